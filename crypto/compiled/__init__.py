"""An engine of machine code for this CPU, made by LLVM through the optional package llvmlite."""
