"""The command line: a module a verb, one place for errors and exit statuses."""
