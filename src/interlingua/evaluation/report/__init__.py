"""Results as tables and pages."""
