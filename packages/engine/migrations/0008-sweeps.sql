-- When a sweep last began, in one row: a process that finds it fresh does not sweep again.
create table sweeps (
  the_only boolean primary key default true,
  begun_at timestamptz not null,
  constraint sweeps_one_row check (the_only)
) with (fillfactor = 50);
