"""From rules to what engines run: encoded rules, parameters, schedules, join orders."""
