-- What the maintenance application keeps: the tables of all catalogs, and how they were when they were last looked at.

create table maintenance_catalogs (
  catalog text primary key,
  refreshed_at timestamptz, -- when its tables were last listed; null while they never were
  tried_at timestamptz,
  error text, -- why the last try failed; its tables are then those of refreshed_at
  refreshing_until timestamptz, -- one process at a time lists a catalog
  skipped integer not null default 0 -- tables whose names cannot be addressed
);

create table maintenance_tables (
  catalog text not null,
  database text not null, -- the levels of its namespace, with dots between them
  table_name text not null,
  primary key (catalog, database, table_name)
);

create table maintenance_health (
  catalog text not null,
  database text not null,
  table_name text not null,
  looked_at timestamptz not null,
  health jsonb not null,
  primary key (catalog, database, table_name)
);
