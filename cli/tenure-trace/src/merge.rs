//! Events of all threads in the order of time, with one tree of stacks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use crate::decode::{self, Event};
use crate::{format, Block, Damage, Trace};

/// A file of code in the address space of the process.
#[derive(Clone, Debug)]
pub struct Module {
    pub start: u64,
    pub end: u64,
    /// Address less the bias is an address of the file.
    pub bias: u64,
    pub build_id: Vec<u8>,
    pub path: String,
    /// Stamps between which it was loaded, as far as is known.
    pub from: u64,
    pub to: u64,
}

/// A return address below that of its caller.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub parent: u32,
    pub address: u64,
    /// When it was met.
    pub stamp: u64,
}

/// Multiplies; addresses are no adversary's choice that could cost more than time.
#[derive(Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b));
        }
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

pub type Fast<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// All stacks, as one tree; node 0 is its root.
#[derive(Default)]
pub struct Tree {
    pub nodes: Vec<Node>,
    pub modules: Vec<Module>,
    pub marks: Vec<(u64, u32, String)>,
    pub threads: BTreeSet<u32>,
}

impl Tree {
    /// The module that an address of node `id` lies in.
    pub fn module(&self, id: u32) -> Option<usize> {
        let node = &self.nodes[id as usize];
        let holds = |m: &&usize| {
            let m = &self.modules[**m];
            node.address > m.start && node.address <= m.end && node.stamp <= m.to
        };
        let all: Vec<usize> = (0..self.modules.len()).collect();
        all.iter().filter(holds).min_by_key(|m| self.modules[**m].from.abs_diff(node.stamp)).copied()
    }

    /// From the innermost frame outwards.
    pub fn stack(&self, id: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors((id != 0).then_some(id), |i| {
            let parent = self.nodes[*i as usize].parent;
            (parent != 0).then_some(parent)
        })
    }
}

/// What the streams define, and the number that each node of a stream has in the tree.
#[derive(Default)]
pub(crate) struct Streams {
    pub tree: Tree,
    merged: Vec<Vec<u32>>,
    ids: Fast<(u32, u64), u32>,
}

impl Streams {
    pub fn nodes_of(&self, stream: usize) -> u64 {
        self.merged[stream].len() as u64 - 1
    }

    #[inline]
    pub fn merged(&self, stream: usize, id: u64) -> Result<u32, String> {
        let ids = &self.merged[stream];
        usize::try_from(id)
            .ok()
            .and_then(|i| ids.get(i))
            .copied()
            .ok_or_else(|| "an unknown stack".to_string())
    }

    pub fn add_node(
        &mut self,
        stream: usize,
        back: u64,
        address: u64,
        stamp: u64,
    ) -> Result<(), String> {
        let own = self.merged[stream].len() as u64;
        let parent = self.merged(stream, own.checked_sub(back).ok_or("an unknown parent")?)?;
        let tree = &mut self.tree;
        // An address means another place after its module was unloaded.
        let key = (parent, address);
        let gone = |m: &Module| m.to != u64::MAX && address > m.start && address <= m.end;
        let known = if tree.modules.iter().any(gone) { None } else { self.ids.get(&key) };
        let id = match known {
            Some(id) => *id,
            None => {
                let id = u32::try_from(tree.nodes.len()).map_err(|_| "too many stacks")?;
                tree.nodes.push(Node { parent, address, stamp });
                self.ids.insert(key, id);
                id
            }
        };
        self.merged[stream].push(id);
        Ok(())
    }

    pub fn add_module(&mut self, m: Module) {
        self.tree.modules.push(m);
    }

    pub fn unload(&mut self, start: u64, at: u64) {
        for m in &mut self.tree.modules {
            if m.start == start && m.to == u64::MAX {
                m.to = at;
            }
        }
    }

    pub fn mark(&mut self, at: u64, thread: u32, name: String) {
        self.tree.marks.push((at, thread, name));
    }

    pub fn thread(&mut self, thread: u32) {
        self.tree.threads.insert(thread);
    }
}

/// One stream's events, a block at a time.
struct Queue {
    blocks: Vec<Block>,
    next_block: usize,
    events: Vec<Event>,
    next: usize,
}

impl Trace {
    /// Calls `visit` with every event, in the order of time, and returns the stacks. Reading ends at
    /// a block that is whole but makes no sense; that is damage, too.
    pub fn read<F: FnMut(&Event)>(&self, mut visit: F) -> (Tree, Option<Damage>) {
        let mut numbers: BTreeMap<u32, usize> = BTreeMap::new();
        let mut queues: Vec<Queue> = Vec::new();
        for block in self.blocks.iter().filter(|b| b.kind == format::EVENTS) {
            let at = *numbers.entry(block.stream).or_insert_with(|| {
                queues.push(Queue {
                    blocks: Vec::new(),
                    next_block: 0,
                    events: Vec::new(),
                    next: 0,
                });
                queues.len() - 1
            });
            queues[at].blocks.push(*block);
        }
        let root = Node { parent: 0, address: 0, stamp: 0 };
        let mut streams = Streams { merged: vec![vec![0]; queues.len()], ..Streams::default() };
        streams.tree.nodes.push(root);
        let damage = self.merge(&mut queues, &mut streams, &mut visit).err();
        (streams.tree, damage)
    }

    fn merge<F: FnMut(&Event)>(
        &self,
        queues: &mut [Queue],
        streams: &mut Streams,
        visit: &mut F,
    ) -> Result<(), Damage> {
        let (mut packed, mut raw) = (Vec::new(), Vec::new());
        let mut order = BinaryHeap::new();
        for (i, queue) in queues.iter_mut().enumerate() {
            if self.fill(queue, i, streams, &mut packed, &mut raw)? {
                order.push(Reverse((queue.events[0].stamp, i)));
            }
        }
        while let Some(Reverse((_, i))) = order.pop() {
            let until = order.peek().map_or((u64::MAX, usize::MAX), |Reverse(other)| *other);
            let queue = &mut queues[i];
            loop {
                let event = &queue.events[queue.next];
                if (event.stamp, i) > until {
                    order.push(Reverse((event.stamp, i)));
                    break;
                }
                visit(event);
                queue.next += 1;
                if queue.next == queue.events.len()
                    && !self.fill(queue, i, streams, &mut packed, &mut raw)?
                {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The next block that has events.
    fn fill(
        &self,
        queue: &mut Queue,
        stream: usize,
        streams: &mut Streams,
        packed: &mut Vec<u8>,
        raw: &mut Vec<u8>,
    ) -> Result<bool, Damage> {
        queue.events.clear();
        queue.next = 0;
        while queue.events.is_empty() {
            let Some(block) = queue.blocks.get(queue.next_block) else { return Ok(false) };
            queue.next_block += 1;
            self.events_of(block, packed, raw)
                .and_then(|()| decode::block(raw, stream, streams, &mut queue.events))
                .map_err(|what| Damage { offset: block.offset, what })?;
        }
        Ok(true)
    }
}
