"""An engine of machine code for this CPU, made by LLVM through llvmlite, which is an optional package."""
