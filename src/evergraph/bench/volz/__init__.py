"""The evaluation of Volz, Staab and Motik 2003 rebuilt: their ontologies, their seven measures, their figures beside ours."""
