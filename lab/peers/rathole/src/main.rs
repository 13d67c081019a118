//! The server or the client of a configuration file: `rathole FILE`.

use clap::Parser;
use rathole::{run, Cli};
use tokio::sync::broadcast;

#[tokio::main]
async fn main() {
    // It ends when it is killed; nobody else tells it to.
    let (_end, ended) = broadcast::channel::<bool>(1);
    if let Err(error) = run(Cli::parse(), ended).await {
        eprintln!("{error:#}");
        std::process::exit(1);
    }
}
