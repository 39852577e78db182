"""Plans that run every night: plan files, runs, gates, the store and reports."""
