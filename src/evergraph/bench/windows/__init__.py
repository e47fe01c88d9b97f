"""The evaluation of Barbieri et al. 2010 rebuilt: trees that stream through a window, and their mobility scenario."""
