//! Serving: cells, servers and the clerk (not built yet).
//!
//! A cell is one partition of one row, compressed in memory; servers hold cells, each on several of them; the clerk
//! asks the right server. Until they exist, questions are answered from the Parquet layers by
//! `webstrata_layers::Store`, behind the same trait `Links` that cells will implement.
