// Charts of the report.
