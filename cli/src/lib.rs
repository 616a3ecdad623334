//! A streaming SQL compiler and engine in one binary
