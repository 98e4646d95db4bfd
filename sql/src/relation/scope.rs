//! Which WITH queries can be named where: as in SQL, those of the queries around, and inside of a WITH those before it.

use crate::statement::StreamName;
use datafusion::sql::sqlparser::ast::Query;

#[derive(Debug, Default)]
pub(super) struct Scope {
    /// The queries around, the outermost first.
    frames: Vec<Frame>,
}

#[derive(Debug)]
struct Frame {
    /// Of each WITH query where its body is, and its name.
    ctes: Vec<(*const Query, String)>,
    /// How many of them can be named at present.
    visible: usize,
    recursive: bool,
}

// The addresses are compared and never followed.
impl Scope {
    pub fn enter(&mut self, query: &Query) {
        if let Some(around) = self.frames.last_mut()
            && let Some(at) = around.body(query)
        {
            around.visible = at + usize::from(around.recursive);
        }
        let with = query.with.as_ref();
        let fold = |i: &datafusion::sql::sqlparser::ast::Ident| match i.quote_style {
            Some(_) => i.value.clone(),
            None => i.value.to_lowercase(),
        };
        let ctes: Vec<_> =
            with.map_or(&[][..], |w| &w.cte_tables).iter().map(|c| (c.query.as_ref() as *const Query, fold(&c.alias.name))).collect();
        self.frames.push(Frame { visible: ctes.len(), ctes, recursive: with.is_some_and(|w| w.recursive) });
    }

    pub fn leave(&mut self, query: &Query) {
        self.frames.pop();
        if let Some(around) = self.frames.last_mut()
            && around.body(query).is_some()
        {
            around.visible = around.ctes.len();
        }
    }

    /// The WITH query that `name` means here, if it does.
    pub fn cte(&self, name: &StreamName) -> Option<String> {
        let [name] = name.parts.as_slice() else { return None };
        let named = |f: &Frame| f.ctes[..f.visible].iter().any(|(_, n)| n == name.as_str());
        self.frames.iter().any(named).then(|| name.as_str().to_owned())
    }
}

impl Frame {
    fn body(&self, query: &Query) -> Option<usize> {
        self.ctes.iter().position(|(at, _)| std::ptr::eq(*at, query))
    }
}
