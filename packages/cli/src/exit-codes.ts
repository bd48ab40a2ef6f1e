/** Every exit code, by what it means. docs/reference/cli.md lists the same table; a test compares them. */
export const exitCodes = {
  ok: { code: 0, meaning: 'It was done. For a job that was waited for: it is completed.' },
  failed: { code: 1, meaning: 'It failed, or the job that was run or waited for did not complete.' },
  usage: { code: 2, meaning: 'The command line, the configuration or what was submitted is not valid.' },
  nothing: { code: 3, meaning: 'There was nothing to do: `worker --once` found no job that is due.' },
  notFound: { code: 4, meaning: 'There is no such job, pipeline, operation, token or database.' },
  conflict: { code: 5, meaning: 'The state of a job, lock or key stands in the way; the message names it.' },
  denied: { code: 6, meaning: 'The token or the database user is missing, not known, or may not do this.' },
  unavailable: { code: 7, meaning: 'The server or the database cannot be reached or refuses work for now: try again.' },
  warnings: { code: 8, meaning: '`doctor` has warnings, and nothing worse.' },
  interrupted: { code: 130, meaning: 'A second SIGINT came before it had stopped.' },
  terminated: { code: 143, meaning: 'A second SIGTERM came before it had stopped.' },
} as const

export type Exit = keyof typeof exitCodes
