//! Row groups that are taken over from another file without decoding a value: bytes as they are, or pages in another codec.

use super::{Choice, ColumnChunk, PartEncoder, WriteOptions, coded_options, field_id, leaves, properties::properties};
use crate::{
    Error, Result,
    codec::{Codec, ColumnCodec},
    ids::{ColumnId, Sn},
    part::{
        PartMeta,
        compress::Compressor,
        dictionary::{self, write::Codebook},
        encode::ROW_GROUP_ROWS,
        reader::PartReader,
        recode,
        store::piece_bytes,
    },
};
use arrow::{
    array::{ArrayRef, Int64Array},
    datatypes::{Field, SchemaRef},
};
use parquet::{
    arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata},
    basic::Encoding,
    column::writer::ColumnCloseResult,
    file::{
        metadata::{RowGroupMetaData, SortingColumn},
        writer::SerializedFileWriter,
    },
};
use std::{collections::HashMap, io::Write, ops::Range, sync::Arc};

impl WriteOptions {
    /// To write the columns of a part as they are, whatever its stream has become since.
    pub fn like(from: &PartReader, codec: Codec, column_codecs: HashMap<ColumnId, ColumnCodec>) -> Self {
        let leaf = |i: i32| from.metadata().file_metadata().schema_descr().columns().get(usize::try_from(i).ok()?).cloned();
        let name = |s: &SortingColumn| leaf(s.column_idx)?.path().parts().first().cloned();
        let sorting = from.metadata().row_groups().first().and_then(|g| g.sorting_columns().cloned()).unwrap_or_default();
        Self {
            schema: from.schema().clone(),
            codec,
            column_codecs,
            sorted_by: sorting.iter().map_while(name).collect(),
            bloom: Vec::new(),
            sets: Vec::new(),
            computed: Vec::new(),
            row_group_rows: ROW_GROUP_ROWS,
            piece_bytes: piece_bytes(true, 0),
            threads: 1,
        }
    }
}

impl<W: Write + Send> PartEncoder<W> {
    /// Takes over row group `i` of a part with the same columns, without decoding it. `uncompressed` is what its values come to.
    pub fn copy_row_group(&mut self, from: &PartReader, i: usize, uncompressed: u64) -> Result<()> {
        self.end_row_group()?;
        self.take_row_groups(from, i..i + 1, &|_| None, None, &mut |_| {})?;
        self.uncompressed_bytes += uncompressed;
        Ok(())
    }

    /// [`Self::copy_row_group`] with its pages compressed anew, by the options' codec. Columns with a codec of their own keep it.
    pub fn recode_row_group(&mut self, from: &PartReader, i: usize, uncompressed: u64) -> Result<()> {
        self.recode_row_groups(from, i..i + 1, None, &mut |_| {})?;
        self.uncompressed_bytes += uncompressed;
        Ok(())
    }

    /// [`Self::recode_row_group`] for all of a part, side by side, and compares it with the length and checksum it was written with, by
    /// the same reading. `taken` is told the rows of each as it is written.
    ///
    /// # Errors
    /// `Corrupt` where the part's bytes are not those that were written.
    pub fn recode_part(&mut self, from: &PartReader, written: (u64, u64), taken: &mut dyn FnMut(u64)) -> Result<()> {
        self.recode_row_groups(from, 0..from.row_groups(), Some(written), taken)
    }

    fn recode_row_groups(
        &mut self,
        from: &PartReader,
        groups: Range<usize>,
        written: Option<(u64, u64)>,
        taken: &mut dyn FnMut(u64),
    ) -> Result<()> {
        self.end_row_group()?;
        let (codec, own) = (self.options.codec, self.own_codecs());
        self.take_row_groups(from, groups, &|root| own.get(root).is_none_or(Option::is_none).then_some(codec), written, taken)
    }

    /// Takes over row groups as they are, but for `_tp_sn`, which says one record for every row. `taken` is told the rows of each as it is
    /// written.
    pub fn copy_as_one_record(&mut self, from: &PartReader, groups: Range<usize>, sn: Sn, taken: &mut dyn FnMut(u64)) -> Result<()> {
        self.end_row_group()?;
        let last = self.options.schema.fields().last().filter(|f| field_id(f) == Some(ColumnId::TP_SN)).cloned();
        let field = last.ok_or_else(|| Error::internal("the last column of a part is not _tp_sn"))?;
        let sn = i64::try_from(sn.0).map_err(|_| Error::internal("an sn beyond what a row can carry"))?;
        for i in groups {
            let source = from.metadata().row_group(i);
            let mut choices = choices_of(&self.options.schema, source);
            choices.pop();
            choices.push(Choice::Dictionary);
            if self.file.is_none() {
                self.begin(choices)?;
            }
            let column = source.columns().last().map(|c| c.column_descr_ptr());
            let column = column.ok_or_else(|| Error::corrupt("a row group without columns"))?;
            let rows = from.rows_of(i);
            let values: ArrayRef = Arc::new(Int64Array::from_value(sn, rows));
            let options = coded_options(&self.options, &field, &column);
            let write = |c: &mut Compressor| dictionary::write::encode(&options, &[values], &mut Codebook::default(), c);
            let chunk = self.compressors.lend(options.codec, write)?;
            let chunk = chunk.ok_or_else(|| Error::internal("one value for all rows is no dictionary"))?;
            let (file, _) = self.file.as_mut().expect("begun above");
            let mut group = file.next_row_group()?;
            for leaf in 0..source.num_columns().saturating_sub(1) {
                group.append_column(from.source(), closed_as_it_is(from, i, leaf)?)?;
            }
            group.append_column(&chunk.bytes, chunk.close)?;
            let written = group.close()?;
            self.closed(&written, rows as u64)?;
            taken(rows as u64);
        }
        Ok(())
    }

    /// Row groups that are taken over from now on are of this part.
    pub fn takes_over(&mut self, part: &PartMeta) {
        self.foreign = (part.sets.clone(), part.computed.clone());
    }

    /// Each column's own codec.
    fn own_codecs(&self) -> Vec<Option<Codec>> {
        let own = |f: &Arc<Field>| field_id(f).and_then(|id| self.options.column_codecs.get(&id)).map(|c| c.codec);
        self.options.schema.fields().iter().map(own).collect()
    }

    /// Column chunks as they are, or their pages in the codec that `recode` names for the column at that place of the schema. With
    /// `written` all of the file is compared with that length and checksum.
    fn take_row_groups(
        &mut self,
        from: &PartReader,
        groups: Range<usize>,
        recode: &dyn Fn(usize) -> Option<Codec>,
        written: Option<(u64, u64)>,
        taken: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let roots = self.options.schema.fields().iter().enumerate();
        let codecs: Vec<Option<Codec>> = roots.flat_map(|(root, f)| std::iter::repeat_n(recode(root), leaves(f.data_type()))).collect();
        recode::ahead(from, groups.clone(), &codecs, self.options.threads, written, |mut chunks| {
            for i in groups {
                let source = from.metadata().row_group(i);
                if self.file.is_none() {
                    self.begin(choices_of(&self.options.schema, source))?;
                }
                let (file, _) = self.file.as_mut().expect("begun above");
                let mut group = file.next_row_group()?;
                for leaf in 0..source.num_columns() {
                    match codecs.get(leaf).copied().flatten() {
                        Some(_) => {
                            let chunk = chunks.get(i, leaf)?;
                            group.append_column(&chunk.bytes, chunk.close)?;
                        }
                        None => group.append_column(from.source(), closed_as_it_is(from, i, leaf)?)?,
                    }
                }
                let written = group.close()?;
                self.sets.iter_mut().for_each(|(_, set)| set.take_over(&self.foreign.0));
                self.computed.iter_mut().for_each(|c| c.take_over(&self.foreign.1));
                let rows = source.num_rows().max(0) as u64;
                self.closed(&written, rows)?;
                chunks.written(i);
                taken(rows);
            }
            Ok(())
        })
    }

    /// The library has no LZ4HC: what it made is compressed anew, in memory.
    pub(super) fn end_row_group_in_lz4hc(&mut self, chunks: Vec<ColumnChunk>) -> Result<()> {
        let codecs: Vec<Codec> = self.own_codecs().into_iter().map(|own| own.unwrap_or(self.options.codec)).collect();
        let mut made_by_library = Vec::with_capacity(chunks.len());
        let mut props = properties(&self.options, &self.choices, &[])?;
        add_encoded_arrow_schema_to_metadata(&self.options.schema, &mut props);
        let parquet_schema = ArrowSchemaConverter::new().convert(&self.options.schema)?;
        let mut file = SerializedFileWriter::new(Vec::new(), parquet_schema.root_schema_ptr(), Arc::new(props))?;
        let mut group = file.next_row_group()?;
        for chunk in chunks {
            made_by_library.push(matches!(chunk, ColumnChunk::Library(_)));
            chunk.append_to(&mut group)?;
        }
        group.close()?;
        let from = PartReader::of_bytes("a row group in memory", file.into_inner()?.into())?;
        let mut leaf = 0;
        let mut by_library = Vec::with_capacity(codecs.len());
        for field in self.options.schema.fields() {
            by_library.push(made_by_library.get(leaf).copied().unwrap_or(false));
            leaf += leaves(field.data_type());
        }
        let recode = |root: usize| codecs.get(root).copied().filter(|c| by_library[root] && matches!(c, Codec::Lz4hc(_)));
        // Its rows were looked at before they were encoded.
        let known = (std::mem::take(&mut self.sets), std::mem::take(&mut self.computed));
        let taken = self.take_row_groups(&from, 0..1, &recode, None, &mut |_| {});
        (self.sets, self.computed) = known;
        taken
    }
}

/// What a row group is told of a chunk that it takes over as it is.
fn closed_as_it_is(from: &PartReader, group: usize, leaf: usize) -> Result<ColumnCloseResult> {
    let metadata = from.metadata();
    let (source, column) = (metadata.row_group(group), metadata.row_group(group).column(leaf));
    Ok(ColumnCloseResult {
        bytes_written: column.compressed_size().max(0) as u64,
        rows_written: source.num_rows().max(0) as u64,
        metadata: column.clone(),
        bloom_filter: from.bloom_filter(group, leaf)?,
        column_index: metadata.column_index().and_then(|c| c.get(group)?.get(leaf).cloned()),
        offset_index: metadata.offset_index().and_then(|o| o.get(group)?.get(leaf).cloned()),
    })
}

/// What the columns of a row group were written with.
fn choices_of(schema: &SchemaRef, group: &RowGroupMetaData) -> Vec<Choice> {
    let mut leaf = 0;
    let mut choices = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let column = group.columns().get(leaf);
        let with = |e: &Encoding| column.is_some_and(|c| c.dictionary_page_offset().is_none() && c.encodings().any(|had| had == *e));
        let plain = [Encoding::DELTA_BINARY_PACKED, Encoding::BYTE_STREAM_SPLIT].into_iter().find(with);
        choices.push(plain.map_or(Choice::Dictionary, Choice::Plain));
        leaf += leaves(field.data_type());
    }
    choices
}
