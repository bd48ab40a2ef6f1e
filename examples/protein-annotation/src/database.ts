import pg from 'pg'

const tables = `
  create schema annotation;
  create table annotation.proteins (
    dataset text, accession text, name text not null, go_terms text[] not null, sequence text not null,
    primary key (dataset, accession));
  create table annotation.embeddings (
    dataset text, accession text, model text, vector real[] not null, job_id text not null,
    primary key (dataset, accession, model));
  create table annotation.predictions (
    dataset text, accession text, model text, go_term text, score real not null, evidence jsonb not null,
    primary key (dataset, accession, model, go_term));
  create table annotation.devices (
    device text primary key, job_id uuid not null);`

/** Connections for what the example reads by itself. What it writes goes through the attempts of its jobs. */
export function openPool(database: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: database, max: 4 })
  pool.on('error', () => {}) // an idle connection that breaks; the next query gets another one
  return pool
}

/** Makes the example's own tables, beside the engine's schema. */
export async function createTables(pool: pg.Pool): Promise<void> {
  await pool.query(tables)
}
