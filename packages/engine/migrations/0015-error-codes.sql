-- Jobs by the code of their error, in the order of ids. Few jobs have one.
create index live_jobs_error_code on live_jobs (error_code, job_id) where error_code is not null;
create index finished_jobs_error_code on finished_jobs (error_code, job_id) where error_code is not null;
