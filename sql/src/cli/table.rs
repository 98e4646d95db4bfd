//! Rows as an aligned table, the way psql prints them; values read exactly as a client sees them.

use crate::wire::encode::{Column, Zone, write_text};
use arrow::{datatypes::DataType, datatypes::Schema, error::ArrowError, record_batch::RecordBatch};
use bytes::BytesMut;

/// Collects rows of one result, then prints them at once, since widths depend on all of them.
pub struct Table {
    titles: Vec<String>,
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
    zone: Zone,
}

impl Table {
    pub fn new(schema: &Schema) -> Self {
        let titles = schema.fields().iter().map(|f| f.name().clone()).collect();
        let right = schema.fields().iter().map(|f| is_number(f.data_type())).collect();
        Self { titles, right, rows: Vec::new(), zone: Zone::Utc }
    }

    /// Moments are shown as they are read there; without this in UTC.
    pub fn in_zone(self, zone: Zone) -> Self {
        Self { zone, ..self }
    }

    /// A table of texts, all columns aligned left.
    pub fn of_texts(titles: &[&str]) -> Self {
        Self {
            titles: titles.iter().map(|t| (*t).to_owned()).collect(),
            right: vec![false; titles.len()],
            rows: Vec::new(),
            zone: Zone::Utc,
        }
    }

    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    pub fn push_batch(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Column::all(batch)?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|c| cell(c, row, &self.zone)).collect();
            self.rows.push(cells);
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Title line, rule, rows, and `(n rows)`.
    pub fn render(&self) -> String {
        let mut out = self.render_rows();
        let plural = if self.rows.len() == 1 { "" } else { "s" };
        out.push_str(&format!("({} row{plural})\n", self.rows.len()));
        out
    }

    /// Without the count.
    pub fn render_rows(&self) -> String {
        let width = |i: usize| self.rows.iter().map(|r| shown_width(&r[i])).chain([shown_width(&self.titles[i])]).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.titles.len()).map(width).collect();
        let mut out = String::new();
        let centred: Vec<String> = self.titles.iter().zip(&widths).map(|(t, w)| centre(t, *w)).collect();
        push_line(&mut out, &centred);
        let rules: Vec<String> = widths.iter().map(|w| "-".repeat(w + 2)).collect();
        out.push_str(&rules.join("+"));
        out.push('\n');
        for row in &self.rows {
            // A value of several lines takes as many lines of the table.
            let cells: Vec<Vec<&str>> = row.iter().map(|c| c.split('\n').collect()).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            for line in 0..height {
                let part = |i: usize| cells[i].get(line).copied().unwrap_or("");
                let cells: Vec<String> = (0..row.len()).map(|i| pad(part(i), widths[i], self.right[i])).collect();
                push_line(&mut out, &cells);
            }
        }
        out
    }
}

fn push_line(out: &mut String, cells: &[String]) {
    let line = format!(" {}", cells.join(" | "));
    out.push_str(line.trim_end());
    out.push('\n');
}

fn cell(column: &Column, row: usize, zone: &Zone) -> String {
    if column.is_null(row) {
        return String::new();
    }
    let mut out = BytesMut::new();
    write_text(&mut out, column, row, zone);
    String::from_utf8_lossy(&out).replace('\r', "\\r")
}

/// Of the longest line.
fn shown_width(text: &str) -> usize {
    text.split('\n').map(|line| line.chars().count()).max().unwrap_or(0)
}

fn centre(text: &str, width: usize) -> String {
    let left = width.saturating_sub(shown_width(text)) / 2;
    pad(&format!("{}{text}", " ".repeat(left)), width, false)
}

fn pad(text: &str, width: usize, right: bool) -> String {
    let blank = " ".repeat(width.saturating_sub(shown_width(text)));
    if right { format!("{blank}{text}") } else { format!("{text}{blank}") }
}

fn is_number(t: &DataType) -> bool {
    t.is_numeric() || matches!(t, DataType::Dictionary(_, v) if v.is_numeric())
}

#[cfg(test)]
mod tests;
