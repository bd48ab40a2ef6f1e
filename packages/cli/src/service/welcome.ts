import type { Output } from '../output/output.ts'
import { facts } from '../output/table.ts'
import { version } from '../version.ts'

/** What is running. */
export interface Running {
  url: string
  database: string
  operations: readonly string[]
  /** The operations are the built-in samples. */
  samples: boolean
  /** The catalogs whose tables it maintains. */
  catalogs: readonly string[]
  /** Requests need a token. */
  protected: boolean
}

/** Where to look, and what to try. */
export function welcome(running: Running, output: Output): string {
  const { url, database, operations } = running
  const jobs = running.samples ? samplesToTry(running) : [curl(running, `${url}/operations`)]
  const lines = running.catalogs.length === 0 ? jobs : [curl(running, `${url}/tables`), ...jobs]
  return [
    '',
    output.style('bold', `Fencepost ${version} is running.`),
    '',
    facts([
      ['  API', output.style('cyan', url)],
      ['  Its description', output.style('cyan', `${url}/docs`)],
      ['  Metrics', output.style('cyan', `${url}/metrics`)],
      ['  Database', database],
      ['  Operations', operations.join(', ')],
      ['  Catalogs', running.catalogs.length === 0 ? undefined : running.catalogs.join(', ')],
    ]),
    '',
    'Try, in another terminal:',
    '',
    ...lines.map((line) => `  ${line}`),
    `  npx fencepost jobs list${url.endsWith(':8080') ? '' : ` --url ${url}`}`,
    '',
    'Ctrl-C stops it.',
  ].join('\n')
}

function samplesToTry(running: Running): string[] {
  const submit = (operation: string, payload: string) =>
    curl(
      running,
      `-X POST ${running.url}/operations/${operation}/jobs -H 'content-type: application/json' -d '${payload}'`,
    )
  return [
    submit('sample_count', '{"payload": {"to": 20}}'),
    submit('sample_flaky', '{"payload": {"failures": 2}}'),
    submit('sample_fan_out', '{"payload": {"children": 5}}'),
    curl(running, `${running.url}/jobs`),
    curl(running, `-N -H 'accept: text/event-stream' ${running.url}/events`),
  ]
}

function curl({ protected: guarded }: Running, what: string): string {
  return guarded ? `curl -H "authorization: Bearer $FENCEPOST_TOKEN" ${what}` : `curl ${what}`
}
