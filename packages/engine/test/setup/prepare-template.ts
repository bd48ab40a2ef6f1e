import type pg from 'pg'

/**
 * What every test database has beyond the migrations: a clock that tests can move. It replaces the engine's only clock
 * by one that is ahead by what a row says, a row that every session of the database sees at once.
 */
export async function prepareTemplate(client: pg.ClientBase, schema: string): Promise<void> {
  await client.query(`
    create table ${schema}.test_clock (ahead interval not null);
    insert into ${schema}.test_clock values ('0');
    create or replace function ${schema}.clock() returns timestamptz
      language sql stable parallel safe
      return statement_timestamp() + (select ahead from ${schema}.test_clock)`)
}
