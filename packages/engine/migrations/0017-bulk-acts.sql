-- One row for each act on all jobs of a filter: first as a preview, then as the act itself, with how far it has come. Whoever
-- does a batch holds the row meanwhile.
create table bulk_acts (
  bulk_act_id uuid primary key,
  act text not null,
  filter jsonb not null,
  -- Only jobs submitted up to the preview: this is the first id after it.
  before_job_id uuid not null,
  previewed_count bigint not null,
  previewed_at timestamptz not null,
  state text not null default 'previewed',
  submitted_by text,
  -- The last job that was looked at, in the order of ids.
  cursor_job_id uuid,
  done bigint not null default 0,
  refused bigint not null default 0,
  started_at timestamptz,
  ended_at timestamptz,
  constraint bulk_acts_act check (act in ('run_again', 'cancel', 'delete')),
  constraint bulk_acts_state check (state in ('previewed', 'running', 'completed', 'stopped')),
  constraint bulk_acts_times check (case state when 'previewed' then num_nonnulls(started_at, ended_at) = 0
                                               when 'running' then started_at is not null and ended_at is null
                                               else num_nulls(started_at, ended_at) = 0 end)
);
create index bulk_acts_running on bulk_acts (started_at) where state = 'running';
