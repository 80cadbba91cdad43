"""The kept sums of dashboards and lists."""
