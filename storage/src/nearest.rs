//! The known name that a wrong one was probably meant to be.

#[cfg(test)]
mod tests;

/// How many edits apart two names may be, per three characters of the longer one.
const EDITS_PER_THREE: usize = 1;

/// The candidate with the fewest edits (insert, delete, replace, swap neighbours) from `word`, ignoring case; `None` where none is near.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.to_lowercase().chars().take(MAX_LENGTH).collect();
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let other: Vec<char> = candidate.to_lowercase().chars().take(MAX_LENGTH).collect();
            let allowed = (word.len().max(other.len()) * EDITS_PER_THREE).div_ceil(3);
            let edits = distance(&word, &other);
            (edits <= allowed).then_some((edits, candidate))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// Longer names are compared by their beginning.
const MAX_LENGTH: usize = 64;

/// `; did you mean 'x'?`, or nothing.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |near| format!("; did you mean '{near}'?"))
}

/// Optimal string alignment.
fn distance(a: &[char], b: &[char]) -> usize {
    let width = b.len() + 1;
    let mut before: Vec<usize> = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; width];
        for j in 1..width {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
