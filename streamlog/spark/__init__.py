"""Programs on Apache Spark."""
