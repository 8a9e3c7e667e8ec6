"""Results for a paper: tables and figures of finished runs and studies."""
