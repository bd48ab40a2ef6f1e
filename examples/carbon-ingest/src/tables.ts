import type { ClientBase } from 'pg'

/** Makes the tables of this system in a schema of their own, beside the engine's. */
export async function makeTables(client: Pick<ClientBase, 'query'>): Promise<void> {
  await client.query(`
    create schema if not exists carbon;
    create table if not exists carbon.years (
      year integer primary key
    );
    create table if not exists carbon.entries (
      year integer not null,
      entry_id integer not null,
      day date not null,
      org_unit text not null,
      module text not null,
      data_type text not null,
      category text not null,
      quantity numeric(12, 3) not null check (quantity >= 0),
      primary key (entry_id, year)
    );
    create table if not exists carbon.factors (
      year integer not null references carbon.years,
      module text not null,
      data_type text not null,
      category text not null,
      kg_per_unit numeric(12, 6) not null check (kg_per_unit >= 0),
      primary key (year, module, data_type, category)
    );
    create table if not exists carbon.emissions (
      year integer not null,
      entry_id integer not null,
      org_unit text not null,
      module text not null,
      data_type text not null,
      kg numeric not null,
      primary key (entry_id, year, module, data_type)
    );
    -- Nothing here keeps a report from being written twice. That is the fence's task.
    create table if not exists carbon.reports (
      report_id bigint generated always as identity primary key,
      year integer not null references carbon.years,
      job_id uuid not null,
      written_at timestamptz not null default now(),
      entries bigint not null,
      kg numeric not null
    );
    create table if not exists carbon.report_lines (
      report_id bigint not null references carbon.reports,
      org_unit text not null,
      module text not null,
      data_type text not null,
      entries bigint not null,
      kg numeric not null,
      primary key (report_id, org_unit, module, data_type)
    )`)
}
