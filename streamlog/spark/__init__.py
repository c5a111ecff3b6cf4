"""Rules over Spark DataFrames."""
