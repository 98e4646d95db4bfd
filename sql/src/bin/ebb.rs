//! The `ebb` program. Everything is in [`ebb::cli`]; here is only what a whole process decides.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    ebb::cli::main()
}
