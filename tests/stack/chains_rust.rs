// SPDX-License-Identifier: GPL-2.0-or-later
// The same in Rust.
use std::io::{Read, Write};

mod shop {
    pub struct Basket<T> {
        pub things: Vec<T>,
    }

    impl<T: Copy> Basket<T> {
        #[inline(never)]
        pub fn fill(&mut self, thing: T) -> usize {
            self.things.push(thing);
            super::wait_here();
            std::hint::black_box(self.things.len())
        }
    }

    #[inline(never)]
    pub fn visit(number: u64) -> usize {
        let mut basket = Basket { things: Vec::new() };
        std::hint::black_box(basket.fill(number))
    }
}

#[inline(never)]
fn wait_here() {
    println!("ready {} chains_rust::wait_here * chains_rust::shop::visit chains_rust::main", std::process::id());
    std::io::stdout().flush().unwrap();
    let mut end = [0u8; 1];
    while std::io::stdin().read(&mut end).unwrap() > 0 {}
    std::process::exit(std::hint::black_box(0));
}

fn main() {
    if std::env::args().count() < 2 {
        println!("generic");
        return;
    }
    std::hint::black_box(shop::visit(3));
}
