-- A job that runs another one again names it here, not in its own row: hardly any job has one, and no statement of the
-- releases before knows of it.
create table run_agains (
  job_id uuid primary key,
  run_again_of uuid not null
);
-- The newest job that ran a job again is the last of its entries.
create index run_agains_of on run_agains (run_again_of, job_id);
