//! Columns of the catalogue's tables, and rows made by naming only what is not PostgreSQL's usual value.
//!
//! A column that clients ask for must be here even if it never says anything: a missing one fails their whole query.

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, Field, Schema, SchemaRef},
};
use datafusion::{
    common::ScalarValue,
    error::{DataFusionError, Result},
};
use ebb_storage::stream_def::TYPE_META_KEY;
use std::{collections::HashMap, sync::Arc};

/// Name and columns. Kinds: `oid`, `name`, `char`, `text` (NULL unless said), `bool`, `int2`, `int4`, `int8`, `float4`, `texts`, `oids`, `int2s`.
pub const TABLES: &[(&str, &str)] = &[
    (
        "pg_class",
        "oid:oid relname:name relnamespace:oid reltype:oid reloftype:oid relowner:oid relam:oid relfilenode:oid reltablespace:oid \
         relpages:int4 reltuples:float4 relallvisible:int4 reltoastrelid:oid relhasindex:bool relisshared:bool relpersistence:char \
         relkind:char relnatts:int2 relchecks:int2 relhasrules:bool relhastriggers:bool relhassubclass:bool relrowsecurity:bool \
         relforcerowsecurity:bool relispopulated:bool relreplident:char relispartition:bool relrewrite:oid relfrozenxid:int8 \
         relminmxid:int8 relacl:texts reloptions:texts relpartbound:text xmin:int8",
    ),
    ("pg_namespace", "oid:oid nspname:name nspowner:oid nspacl:texts"),
    (
        "pg_attribute",
        "attrelid:oid attname:name atttypid:oid attstattarget:int4 attlen:int2 attnum:int2 attndims:int4 attcacheoff:int4 \
         atttypmod:int4 attbyval:bool attalign:char attstorage:char attcompression:char attnotnull:bool atthasdef:bool \
         atthasmissing:bool attidentity:char attgenerated:char attisdropped:bool attislocal:bool attinhcount:int4 attcollation:oid \
         attacl:texts attoptions:texts attfdwoptions:texts",
    ),
    ("pg_attrdef", "oid:oid adrelid:oid adnum:int2 adbin:text"),
    (
        "pg_type",
        "oid:oid typname:name typnamespace:oid typowner:oid typlen:int2 typbyval:bool typtype:char typcategory:char \
         typispreferred:bool typisdefined:bool typdelim:char typrelid:oid typsubscript:text typelem:oid typarray:oid typinput:name \
         typoutput:name typreceive:name typsend:name typalign:char typstorage:char typnotnull:bool typbasetype:oid typtypmod:int4 \
         typndims:int4 typcollation:oid typdefault:text typacl:texts",
    ),
    (
        "pg_database",
        "oid:oid datname:name datdba:oid encoding:int4 datlocprovider:char datistemplate:bool datallowconn:bool datconnlimit:int4 \
         datfrozenxid:int8 datminmxid:int8 dattablespace:oid datcollate:name datctype:name daticulocale:text daticurules:text datcollversion:text datacl:texts",
    ),
    (
        "pg_roles",
        "oid:oid rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool rolcanlogin:bool rolreplication:bool \
         rolconnlimit:int4 rolpassword:text rolvaliduntil:text rolbypassrls:bool rolconfig:texts",
    ),
    ("pg_user", "usename:name usesysid:oid usecreatedb:bool usesuper:bool userepl:bool usebypassrls:bool passwd:text"),
    ("pg_am", "oid:oid amname:name amhandler:name amtype:char"),
    ("pg_tablespace", "oid:oid spcname:name spcowner:oid spcacl:texts spcoptions:texts"),
    (
        "pg_settings",
        "name:name setting:text unit:text category:text short_desc:text extra_desc:text context:name vartype:name source:name \
         min_val:text max_val:text enumvals:texts boot_val:text reset_val:text pending_restart:bool",
    ),
    (
        "pg_tables",
        "schemaname:name tablename:name tableowner:name tablespace:text hasindexes:bool hasrules:bool hastriggers:bool rowsecurity:bool",
    ),
    ("pg_description", "objoid:oid classoid:oid objsubid:int4 description:text"),
];

/// Tables that never have rows.
pub const EMPTY: &[(&str, &str)] = &[
    (
        "pg_index",
        "indexrelid:oid indrelid:oid indnatts:int2 indnkeyatts:int2 indisunique:bool indnullsnotdistinct:bool indisprimary:bool \
         indisexclusion:bool indimmediate:bool indisclustered:bool indisvalid:bool indcheckxmin:bool indisready:bool indislive:bool \
         indisreplident:bool indkey:int2s indcollation:oids indclass:oids indoption:int2s indexprs:text indpred:text",
    ),
    (
        "pg_constraint",
        "oid:oid conname:name connamespace:oid contype:char condeferrable:bool condeferred:bool convalidated:bool conrelid:oid \
         contypid:oid conindid:oid conparentid:oid confrelid:oid confupdtype:char confdeltype:char confmatchtype:char conislocal:bool \
         coninhcount:int4 connoinherit:bool conkey:int2s confkey:int2s conexclop:oids conbin:text",
    ),
    (
        "pg_proc",
        "oid:oid proname:name pronamespace:oid proowner:oid prolang:oid procost:float4 prorows:float4 provariadic:oid prosupport:name \
         prokind:char prosecdef:bool proleakproof:bool proisstrict:bool proretset:bool provolatile:char proparallel:char \
         pronargs:int2 prorettype:oid proargtypes:oids proallargtypes:oids proargmodes:texts proargnames:texts prosrc:text \
         probin:text proacl:texts proconfig:texts",
    ),
    ("pg_inherits", "inhrelid:oid inhparent:oid inhseqno:int4 inhdetachpending:bool"),
    ("pg_policy", "oid:oid polname:name polrelid:oid polcmd:char polpermissive:bool polroles:oids polqual:text polwithcheck:text"),
    (
        "pg_publication",
        "oid:oid pubname:name pubowner:oid puballtables:bool pubinsert:bool pubupdate:bool pubdelete:bool pubtruncate:bool pubviaroot:bool",
    ),
    ("pg_publication_rel", "oid:oid prpubid:oid prrelid:oid prqual:text prattrs:int2s"),
    ("pg_publication_namespace", "oid:oid pnpubid:oid pnnspid:oid"),
    ("pg_publication_tables", "pubname:name schemaname:name tablename:name attnames:texts rowfilter:text"),
    (
        "pg_statistic_ext",
        "oid:oid stxrelid:oid stxname:name stxnamespace:oid stxowner:oid stxstattarget:int4 stxkeys:int2s stxkind:texts stxexprs:text",
    ),
    (
        "pg_trigger",
        "oid:oid tgrelid:oid tgparentid:oid tgname:name tgfoid:oid tgtype:int2 tgenabled:char tgisinternal:bool tgconstrrelid:oid \
         tgconstrindid:oid tgconstraint:oid tgdeferrable:bool tginitdeferred:bool tgnargs:int2 tgattr:int2s tgqual:text",
    ),
    (
        "pg_collation",
        "oid:oid collname:name collnamespace:oid collowner:oid collprovider:char collisdeterministic:bool collencoding:int4 collcollate:text collctype:text colliculocale:text collversion:text",
    ),
    ("pg_foreign_table", "ftrelid:oid ftserver:oid ftoptions:texts"),
    ("pg_foreign_server", "oid:oid srvname:name srvowner:oid srvfdw:oid srvtype:text srvversion:text srvacl:texts srvoptions:texts"),
    ("pg_foreign_data_wrapper", "oid:oid fdwname:name fdwowner:oid fdwhandler:oid fdwvalidator:oid fdwacl:texts fdwoptions:texts"),
    ("pg_range", "rngtypid:oid rngsubtype:oid rngmultitypid:oid rngcollation:oid rngsubopc:oid rngcanonical:name rngsubdiff:name"),
    ("pg_enum", "oid:oid enumtypid:oid enumsortorder:float4 enumlabel:name"),
    ("pg_sequence", "seqrelid:oid seqtypid:oid seqstart:int8 seqincrement:int8 seqmax:int8 seqmin:int8 seqcache:int8 seqcycle:bool"),
    ("pg_sequences", "schemaname:name sequencename:name sequenceowner:name data_type:oid start_value:int8 last_value:int8"),
    ("pg_views", "schemaname:name viewname:name viewowner:name definition:text"),
    ("pg_matviews", "schemaname:name matviewname:name matviewowner:name tablespace:name hasindexes:bool ispopulated:bool definition:text"),
    ("pg_indexes", "schemaname:name tablename:name indexname:name tablespace:name indexdef:text"),
    (
        "pg_extension",
        "oid:oid extname:name extowner:oid extnamespace:oid extrelocatable:bool extversion:text extconfig:oids extcondition:texts",
    ),
    ("pg_available_extensions", "name:name default_version:text installed_version:text comment:text"),
    ("pg_event_trigger", "oid:oid evtname:name evtevent:name evtowner:oid evtfoid:oid evtenabled:char evttags:texts"),
    ("pg_depend", "classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid refobjsubid:int4 deptype:char"),
    ("pg_rewrite", "oid:oid rulename:name ev_class:oid ev_type:char ev_enabled:char is_instead:bool ev_qual:text ev_action:text"),
    (
        "pg_partitioned_table",
        "partrelid:oid partstrat:char partnatts:int2 partdefid:oid partattrs:int2s partclass:oids partcollation:oids partexprs:text",
    ),
    (
        "pg_opclass",
        "oid:oid opcmethod:oid opcname:name opcnamespace:oid opcowner:oid opcfamily:oid opcintype:oid opcdefault:bool opckeytype:oid",
    ),
    (
        "pg_operator",
        "oid:oid oprname:name oprnamespace:oid oprowner:oid oprkind:char oprcanmerge:bool oprcanhash:bool oprleft:oid oprright:oid oprresult:oid oprcode:oid",
    ),
    ("pg_aggregate", "aggfnoid:oid aggkind:char aggnumdirectargs:int2"),
    ("pg_cast", "oid:oid castsource:oid casttarget:oid castfunc:oid castcontext:char castmethod:char"),
    (
        "pg_language",
        "oid:oid lanname:name lanowner:oid lanispl:bool lanpltrusted:bool lanplcallfoid:oid laninline:oid lanvalidator:oid lanacl:texts",
    ),
    ("pg_shdescription", "objoid:oid classoid:oid description:text"),
    ("pg_seclabel", "objoid:oid classoid:oid objsubid:int4 provider:text label:text"),
    ("pg_auth_members", "roleid:oid member:oid grantor:oid admin_option:bool"),
    ("pg_db_role_setting", "setdatabase:oid setrole:oid setconfig:texts"),
    ("pg_default_acl", "oid:oid defaclrole:oid defaclnamespace:oid defaclobjtype:char defaclacl:texts"),
    ("pg_subscription", "oid:oid subdbid:oid subname:name subowner:oid subenabled:bool"),
    (
        "pg_conversion",
        "oid:oid conname:name connamespace:oid conowner:oid conforencoding:int4 contoencoding:int4 conproc:name condefault:bool",
    ),
    ("pg_ts_config", "oid:oid cfgname:name cfgnamespace:oid cfgowner:oid cfgparser:oid"),
    ("pg_ts_dict", "oid:oid dictname:name dictnamespace:oid dictowner:oid dicttemplate:oid dictinitoption:text"),
    ("pg_locks", "locktype:text database:oid relation:oid pid:int4 mode:text granted:bool"),
    ("pg_prepared_xacts", "transaction:int8 gid:text prepared:text owner:name database:name"),
    ("pg_stat_user_tables", "relid:oid schemaname:name relname:name seq_scan:int8 n_live_tup:int8 n_dead_tup:int8"),
    (
        "pg_stat_activity",
        "datid:oid datname:name pid:int4 usesysid:oid usename:name application_name:text client_addr:text state:text query:text backend_type:text",
    ),
];

pub fn columns_of(table: &str) -> Option<&'static str> {
    TABLES.iter().chain(EMPTY).find(|(name, _)| *name == table).map(|(_, columns)| *columns)
}

pub fn is_empty(table: &str) -> bool {
    EMPTY.iter().any(|(name, _)| *name == table)
}

fn list(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", element, true)))
}

fn arrow_type(kind: &str) -> DataType {
    match kind {
        "oid" | "int8" => DataType::Int64,
        "int4" => DataType::Int32,
        "int2" => DataType::Int16,
        "bool" => DataType::Boolean,
        "float4" => DataType::Float32,
        "texts" => list(DataType::Utf8),
        "oids" => list(DataType::Int64),
        "int2s" => list(DataType::Int16),
        _ => DataType::Utf8,
    }
}

pub fn schema(columns: &str) -> SchemaRef {
    let field = |column: &str| {
        let (name, kind) = column.split_once(':').unwrap_or((column, "text"));
        let field = Field::new(name, arrow_type(kind), true);
        // The wire tells clients these types by name.
        match kind {
            "oid" | "name" | "char" => field.with_metadata(HashMap::from([(TYPE_META_KEY.to_owned(), kind.to_owned())])),
            _ => field,
        }
    };
    Arc::new(Schema::new(columns.split_whitespace().map(field).collect::<Vec<_>>()))
}

fn usual(kind: &str) -> Result<ScalarValue> {
    Ok(match kind {
        "name" | "char" => ScalarValue::from(""),
        "text" | "texts" | "oids" | "int2s" => ScalarValue::try_from(&arrow_type(kind))?,
        _ => ScalarValue::new_zero(&arrow_type(kind)).unwrap_or(ScalarValue::Boolean(Some(false))),
    })
}

/// Rows of one table.
pub struct Rows {
    kinds: Vec<(&'static str, &'static str)>,
    schema: SchemaRef,
    columns: Vec<Vec<ScalarValue>>,
}

impl Rows {
    pub fn of(columns: &'static str) -> Self {
        let kinds: Vec<_> = columns.split_whitespace().map(|c| c.split_once(':').unwrap_or((c, "text"))).collect();
        Self { columns: vec![Vec::new(); kinds.len()], kinds, schema: schema(columns) }
    }

    /// A row: what it says, the rest as usual.
    pub fn push(&mut self, says: &[(&str, ScalarValue)]) -> Result<()> {
        for ((name, kind), column) in self.kinds.iter().zip(&mut self.columns) {
            let value = match says.iter().find(|(n, _)| n == name) {
                Some((_, value)) => value.cast_to(&arrow_type(kind))?,
                None => usual(kind)?,
            };
            column.push(value);
        }
        Ok(())
    }

    pub fn finish(self) -> Result<RecordBatch> {
        if self.columns.first().is_none_or(Vec::is_empty) {
            return Ok(RecordBatch::new_empty(self.schema));
        }
        let arrays = self.columns.into_iter().map(ScalarValue::iter_to_array).collect::<Result<Vec<_>>>()?;
        RecordBatch::try_new(self.schema, arrays).map_err(DataFusionError::from)
    }
}
