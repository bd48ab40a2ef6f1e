-- Submits one job without a lock or dedup key; null when submissions are drained.
--
-- For connections on which nothing may be left prepared, such as a caller's own: PL/pgSQL keeps the plan of the insert,
-- which otherwise costs more than the insert. Its body is text, so the schema's name is written into it.
do $migration$
begin
  execute format($create$
    create function %1$I.submit_job(
      operation text, queue text, payload jsonb, priority integer, run_after timestamptz, delay_ms integer,
      max_attempts integer, slot_key text, pipeline_id uuid, submitted_by text
    ) returns uuid language plpgsql volatile as $body$
    #variable_conflict use_column
    declare
      new_id uuid;
    begin
      insert into %1$I.live_jobs (job_id, operation, queue, payload, priority, run_after, max_attempts, slot_key,
                                  pipeline_id, submitted_at, submitted_by)
      select %1$I.new_job_id(%1$I.clock(), 1), $1, $2, $3, $4,
             coalesce($5, %1$I.clock() + $6 * interval '1 millisecond'), $7, $8, $9, %1$I.clock(), $10
       where not exists (select from %1$I.settings where key = 'drain' and value <> 'off')
      returning job_id into new_id;
      return new_id;
    end
    $body$
  $create$, current_schema());
end
$migration$;
