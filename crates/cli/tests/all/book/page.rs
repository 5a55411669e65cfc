//! Markdown as far as the tests need it: links, anchors, code.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Returns the folder of the whole project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A parsed page.
pub struct Page {
    /// Its file, below the project's folder.
    pub path: PathBuf,
    /// Its first heading.
    pub title: String,
    /// Anchors that `#…` may name.
    pub anchors: BTreeSet<String>,
    /// Line and text of each piece of code in a heading.
    pub quoted: Vec<(usize, String)>,
    /// Line and target of each link and picture.
    pub links: Vec<(usize, String)>,
    /// Line and text of each piece of code within a sentence.
    pub spans: Vec<(usize, String)>,
    /// Blocks of code.
    pub blocks: Vec<Block>,
}

/// A block of code.
pub struct Block {
    /// Line of its fence.
    pub line: usize,
    /// Text after the fence; `None` if the block is only indented.
    pub language: Option<String>,
    /// Last file name in the paragraph before it.
    pub file: Option<String>,
    /// Its text.
    pub text: String,
}

impl Page {
    /// Reads the page `path` of the project.
    pub fn read(path: &Path) -> Page {
        let text = std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        Page::parse(path, &text)
    }

    /// Parses the page at `path` with this text.
    pub fn parse(path: &Path, text: &str) -> Page {
        let mut page = Page {
            path: path.to_owned(),
            title: String::new(),
            anchors: BTreeSet::new(),
            quoted: Vec::new(),
            links: Vec::new(),
            spans: Vec::new(),
            blocks: Vec::new(),
        };
        let mut heading: Option<String> = None;
        let mut block: Option<Block> = None;
        let mut file = None;
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            let line = text[..range.start].matches('\n').count() + 1;
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => page.heading(&heading.take().unwrap_or_default()),
                Event::Start(Tag::Paragraph) => file = None,
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push((line, dest_url.into_string()));
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(language) => Some(language.into_string()),
                        CodeBlockKind::Indented => None,
                    };
                    block = Some(Block { line, language, file: file.take(), text: String::new() });
                }
                Event::End(TagEnd::CodeBlock) => page.blocks.extend(block.take()),
                Event::Text(piece) => match (&mut block, &mut heading) {
                    (Some(block), _) => block.text.push_str(&piece),
                    (None, Some(heading)) => heading.push_str(&piece),
                    (None, None) => {}
                },
                Event::Code(code) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&code);
                        page.quoted.push((line, code.to_string()));
                    }
                    if code.contains('.') && !code.contains(' ') {
                        file = Some(code.to_string());
                    }
                    page.spans.push((line, code.into_string()));
                }
                _ => {}
            }
        }
        page
    }

    fn heading(&mut self, text: &str) {
        if self.title.is_empty() {
            self.title = text.trim().to_owned();
        }
        let plain = anchor(text);
        let numbered = (1..).map(|number| format!("{plain}-{number}"));
        let free = std::iter::once(plain.clone()).chain(numbered).find(|name| !self.anchors.contains(name));
        self.anchors.extend(free);
    }

    /// Returns a position such as `docs/page.md:12`.
    pub fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    /// Returns the file that a link names, and the anchor in it.
    pub fn target(&self, link: &str) -> (PathBuf, Option<String>) {
        let (file, place) = link.split_once('#').map_or((link, None), |(file, place)| (file, Some(place.to_owned())));
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let path = if file.is_empty() { self.path.clone() } else { plain(&folder.join(file)) };
        (path, place)
    }
}

/// Returns the path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Returns the anchor of a heading.
fn anchor(heading: &str) -> String {
    let lower = heading.trim().to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn headings_links_and_blocks_are_found() {
    let text = "# A `b` c?\n\nSee [x](../y.md#z), `f.toml`:\n\n```toml\nk = 1\n```\n\n## A b c\n\n    pubmark\n";
    let page = Page::parse(Path::new("docs/p.md"), text);
    assert_eq!(page.title, "A b c?");
    assert_eq!(page.anchors.iter().map(String::as_str).collect::<Vec<_>>(), ["a-b-c", "a-b-c-1"]);
    assert_eq!(page.links, [(3, "../y.md#z".to_owned())]);
    assert_eq!(page.target("../y.md#z"), (PathBuf::from("y.md"), Some("z".to_owned())));
    assert_eq!(page.blocks[0].file.as_deref(), Some("f.toml"));
    assert_eq!((page.blocks[0].line, page.blocks[0].text.as_str()), (5, "k = 1\n"));
    assert!(page.blocks[1].language.is_none());
}
