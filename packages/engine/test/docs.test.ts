import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { parseSync } from 'rolldown/utils'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Attempt } from '../src/attempt/attempt.ts'
import { Engine } from '../src/engine.ts'
import { errorCodes, PermanentError, RetryLater } from '../src/errors.ts'
import * as exported from '../src/index.ts'
import { child, defer } from '../src/lifecycle/defer.ts'
import type { SubmitOptions } from '../src/lifecycle/submission.ts'
import { operation, operationDefaults } from '../src/operation.ts'
import { engineDefaults } from '../src/options.ts'
import { eventLimits } from '../src/read/events.ts'
import { listLimits } from '../src/read/list.ts'
import { workDefaults } from '../src/worker/options.ts'
import { metricNames } from '../src/telemetry.ts'
import { openBed, submitted, work, type Bed } from './bed.ts'
import { compiler } from './build-folder.ts'
import { blocksOf, filesIn, headingsOf, literal, quotesIn, read, root, tableOf, unquoted } from './pages.ts'

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...filesIn('docs', '.md'),
  'bench/README.md',
  ...readdirSync(join(root, 'examples')).map((name) => `examples/${name}/README.md`),
]

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
afterAll(() => bed.close())

test('docs/errors.md lists exactly the error codes, with their meaning', () => {
  const listed = tableOf('docs/errors.md', 'Codes').map(([code, meaning]) => [unquoted(code), meaning])
  expect(Object.fromEntries(listed)).toEqual(errorCodes)
  expect(listed).toHaveLength(Object.keys(errorCodes).length)
})

describe('docs/reference/options.md', () => {
  const page = 'docs/reference/options.md'
  const documented = (heading: string) => tableOf(page, heading).map(([option]) => unquoted(option))
  const defaultsIn = (heading: string) =>
    Object.fromEntries(
      tableOf(page, heading)
        .filter(([, value]) => value !== '–')
        .map(([option, value]) => [unquoted(option), literal(value)]),
    )

  test.each([
    ['openEngine', ['options.ts', 'EngineOptions']],
    ['operation', ['operation.ts', 'OperationOptions'], 'retry', ['operation.ts', 'RetryPolicy']],
    ['wait', ['read/waited.ts', 'WaitOptions']],
    ['claim', ['attempt/claims.ts', 'EngineClaimOptions']],
    ['events', ['read/events.ts', 'EventsOptions']],
    ['work', ['worker/options.ts', 'WorkOptions']],
    ['defer', ['lifecycle/defer.ts', 'DeferOptions']],
    ['rabbitMq', ['worker/rabbitmq/rabbit-mq.ts', 'RabbitMqOptions']],
    ['openEmbeddedPostgres', ['embedded/embedded-postgres.ts', 'EmbeddedPostgresOptions']],
  ] as const)('lists exactly the options of %s', (heading, [file, name], nested?, inner?) => {
    const innerNames = inner === undefined ? [] : propertiesOf(...inner).map((property) => `${nested}.${property}`)
    const options = [...propertiesOf(file, name).filter((property) => property !== nested), ...innerNames]
    expect(documented(heading).sort()).toEqual(options.sort())
  })

  test('lists exactly the options of submit', () => {
    const options = [...propertiesOf('lifecycle/submission.ts', 'SubmitOptions'), 'client']
    expect(propertiesOf('engine.ts', 'EngineSubmitOptions')).toEqual(['client'])
    expect(documented('submit').sort()).toEqual(options.sort())
  })

  test('lists exactly the options of list', () => {
    const options = [...propertiesOf('read/filter.ts', 'JobFilter'), ...propertiesOf('read/list.ts', 'ListOptions')]
    expect(documented('list').sort()).toEqual(options.sort())
  })

  test('gives the defaults that the code has', () => {
    const { retry, ...rest } = operationDefaults
    expect(defaultsIn('openEngine')).toEqual(engineDefaults)
    expect(defaultsIn('operation')).toEqual({
      ...rest,
      'retry.firstDelayMs': retry.firstDelayMs,
      'retry.maxDelayMs': retry.maxDelayMs,
    })
    expect(defaultsIn('claim')).toMatchObject({ queue: operationDefaults.queue })
    expect(defaultsIn('work')).toEqual(workDefaults)
    expect(defaultsIn('list')).toEqual({ limit: listLimits.default })
    expect(defaultsIn('events')).toEqual({ limit: eventLimits.default })
  })
})

describe('docs/reference/metrics.md', () => {
  const page = 'docs/reference/metrics.md'
  const named = (heading: string) =>
    tableOf(page, heading).flatMap(([names = '']) => [...names.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))

  test('lists exactly the metrics of the engine', () => {
    expect(named('Metrics and spans').sort()).toEqual(Object.values(metricNames).sort())
  })

  test('lists exactly the lines that the engine logs', () => {
    const sources = filesIn('packages/engine/src', '.ts').filter((path) => !path.endsWith('.test.ts'))
    const logged = sources.flatMap((path) =>
      [...read(path).matchAll(/logger\S*\(.*, '([a-z_]+)'\)/g)].map(([, line = '']) => line),
    )
    expect(named('Log lines').sort()).toEqual([...new Set(logged)].sort())
  })
})

describe('docs/reference/events.md', () => {
  const rows = tableOf('docs/reference/events.md', 'Events').map(([event, level, fields = '']) => ({
    event: unquoted(event),
    level,
    required: [...fields.matchAll(/(?<!\()`(\w+)`/g)].map(([, field = '']) => field),
    optional: [...fields.matchAll(/\(`(\w+)`\)/g)].map(([, field = '']) => field),
  }))

  test('lists exactly the events that the engine writes', () => {
    const sources = [...filesIn('packages/engine/src', '.ts'), ...filesIn('packages/engine/migrations', '.sql')]
    const written = sources
      .filter((path) => !path.endsWith('.test.ts'))
      .flatMap((path) => [...read(path).matchAll(/'(job\.[a-z_]+)'/g)].map(([, event = '']) => event))
    expect(rows.map(({ event }) => event).sort()).toEqual([...new Set(written)].sort())
  })

  test('gives the level and the fields that every event has', async () => {
    await everyEvent(bed)
    const events = await bed.query<{ event: string; level: string; fields: object | null }>(
      `select event, level, fields from fencepost.job_events where event like 'job.%'`,
    )
    for (const { event, level, required, optional } of rows) {
      const seen = events.filter((one) => one.event === event)
      const fields = seen.map((one) => Object.keys(one.fields ?? {}))
      expect([...new Set(seen.map((one) => one.level))], event).toEqual([level])
      expect([...new Set(fields.flat())].sort(), event).toEqual([...required, ...optional].sort())
      for (const some of fields) expect(some, event).toEqual(expect.arrayContaining(required))
      for (const field of optional)
        expect(
          fields.every((some) => some.includes(field)),
          event,
        ).toBe(false)
    }
  })
})

describe('docs/reference/relations.md', () => {
  const page = 'docs/reference/relations.md'
  const publicRelations = headingsOf(page).filter((heading) => /^[a-z_]+$/.test(heading))

  test.each(publicRelations)('lists exactly the columns of %s', async (relation) => {
    const columns = await bed.query<{ column: string; type: string }>(
      `select column_name as column,
              replace(format_type((udt_schema || '.' || udt_name)::regtype, null), 'timestamp with time zone',
                      'timestamptz') as type
         from information_schema.columns where table_schema = 'fencepost' and table_name = $1
        order by ordinal_position`,
      [relation],
    )
    const listed = tableOf(page, relation).map(([column, type]) => ({ column: unquoted(column), type: unquoted(type) }))
    expect(listed).toEqual(columns)
  })

  test('names every relation, public or internal', async () => {
    const internal = tableOf(page, 'Internal').map(([relation]) => unquoted(relation))
    const there = await bed.query<{ name: string }>(
      `select table_name as name from information_schema.tables
        where table_schema = 'fencepost' and table_name <> 'test_clock'`,
    )
    expect([...publicRelations, ...internal].sort()).toEqual(there.map(({ name }) => name).sort())
  })

  test('asks the autoscaler’s question in a way that Postgres answers', async () => {
    const [question] = blocksOf(page, 'sql')
    expect(await bed.query(question ?? '')).toEqual([{ count: expect.stringMatching(/^\d+$/) }])
  })
})

describe('every page', () => {
  test.each(pages)('%s has links that resolve', (page) => {
    const links = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link)
    const broken = links.filter((link) => !/^https?:/.test(link) && !resolves(page, link))
    expect(broken).toEqual([])
  })

  test.each(pages)('%s names only functions that are there', (page) => {
    const members: Record<string, string[]> = {
      engine: [...Object.getOwnPropertyNames(Engine.prototype), 'schedules', 'bulkActs'],
      attempt: [...Object.getOwnPropertyNames(Attempt.prototype), 'claimed'],
    }
    const named = [...read(page).matchAll(/\b(engine|attempt)\.([a-z]\w*)/gi)]
    const missing = named.filter(([, object = '', member = '']) => !members[object]?.includes(member))
    expect(missing.map(([name]) => name)).toEqual([])
  })

  // A block that begins with ```ts <path> is a part of that file; a line `// …` stands for what is left out.
  test.each(pages)('%s quotes code that is there', (page) => {
    const missing = quotesIn(page).filter(({ path, text }) => !isPartOf(read(path), text))
    expect(missing).toEqual([])
  })

  test('has TypeScript that compiles', () => {
    const examples = pages.flatMap((page) =>
      blocksOf(page, 'ts').map((text, nth) => [`${page.replace(/\.md$/, '').replaceAll('/', '.')}-${nth}.ts`, text]),
    )
    expect(examples.length).toBeGreaterThan(0)
    expect(compileErrors(new Map(examples as [string, string][]))).toEqual([])
  }, 120_000)
})

describe('README.md', () => {
  test('has a first example that runs as written and prints what it says', () => {
    const [example = '', ...others] = pages.flatMap((page) => blocksOf(page, 'js'))
    expect(others).toEqual([]) // only the first one is run: write the others in TypeScript
    const [output = ''] = blocksOf('README.md', 'text')
    expect(anonymous(runExample(example))).toBe(anonymous(output))
  }, 120_000)

  test('names only exports that are there', () => {
    const pieces = tableOf('README.md', 'The API').flatMap(([piece = '']) => [...piece.matchAll(/`(\w+)(?=[(`])/g)])
    expect(pieces.length).toBeGreaterThan(5)
    expect(pieces.map(([, name = '']) => name).filter((name) => !(name in exported))).toEqual([])
  })
})

/** Makes the engine write every event it has, with and without what its fields may lack. */
async function everyEvent({ engine, advance, open }: Bed): Promise<void> {
  const start = async (options: SubmitOptions = {}) => {
    const jobId = await submitted(engine.submit(work, {}, options))
    const answer = await engine.claimJob(jobId, { leaseMs: 7_200_000 })
    if (!answer.claimed) throw new Error(`job ${jobId} was not claimed`)
    return answer.attempt
  }
  const runChild = async (parent: Attempt, settle: (attempt: Attempt) => Promise<unknown>) => {
    await engine.complete(parent, defer([child(work, {})]))
    const [made] = await engine.children(parent.jobId)
    const answer = await engine.claimJob(made?.jobId ?? '')
    if (answer.claimed) await settle(answer.attempt)
  }

  const plain = await start({ by: 'a test' })
  await engine.complete(plain)
  await engine.delete(plain.jobId, { by: 'a test' })
  await engine.fail(await start(), new Error('try again'))
  await engine.fail(await start(), new Error('try again', { cause: new Error('what is below it') }))
  await engine.fail(await start(), Object.assign(new Error('try again'), { stack: undefined }))
  await engine.fail(await start(), new RetryLater('not yet', 60))
  const hopeless = await start()
  await engine.fail(hopeless, new PermanentError('never', { cause: new Error('what is below it') }))
  await engine.delete(hopeless.jobId)
  const failed = await start()
  await engine.fail(failed, new PermanentError('never'))
  const again = await engine.runAgain(failed.jobId, { by: 'a test' })
  if (again.ranAgain) await engine.cancel(again.jobId)
  await engine.runAgain(failed.jobId)
  await engine.release(await start(), 'the worker goes away')
  await runChild(await start(), (attempt) => engine.complete(attempt))
  await runChild(await start(), (attempt) => engine.fail(attempt, new PermanentError('never')))

  const parted = operation('parted', { payload: z.object({}), run: async () => null, parts: { on: async () => null } })
  const other = await open({ operations: [work, parted] })
  const lockKey = 'busy'
  await submitted(engine.submit(work, {}, { lockKey, delayMs: 86_400_000 }))
  await submitted(other.submit(parted, {}))
  const [going] = await other.claim({ operations: ['parted'] })
  if (going === undefined) throw new Error('not claimed')
  await other.complete(going, defer([child(work, {}, { lockKey })], { then: 'on', onLocked: 'skip' }))

  const held = await start({ lockKey: 'line' })
  await submitted(engine.submit(work, {}, { lockKey: 'line', onLocked: 'wait' }))
  await engine.complete(held)

  const holder = await start({ lockKey: 'lock', dedupKey: 'dedup' })
  const chaining = await start()
  chaining.chain(work, {})
  chaining.chain(work, {}, { dedupKey: 'dedup' })
  chaining.chain(work, {}, { lockKey: 'lock' })
  await engine.complete(chaining)

  await engine.cancel(holder.jobId, { by: 'a test' })
  await engine.complete(holder)
  await engine.cancel(await submitted(engine.submit(work, {})))

  await engine.settle(await start({ timeoutMs: 1 }), { kind: 'timed_out', handlerRuns: false })
  await submitted(engine.submit(work, {}, { startWithinMs: 1 }))
  const [stuck, stuckToo] = [await start(), await start()]
  await start({ maxAttempts: 1 })
  await start()
  await advance(3_600_000)
  await engine.recover(stuck.jobId, { by: 'a test' })
  await engine.recover(stuckToo.jobId)
  await advance(7_200_000)
  await engine.sweep()
}

/** Whether the lines of a quote follow each other in the file, however deep they are indented there. */
function isPartOf(file: string, quote: string): boolean {
  const lines = file.split('\n')
  let from = 0
  return quote.split(/^ *\/\/ …\n/m).every((piece) => {
    const wanted = dedented(piece.trimEnd().split('\n'))
    for (; from + wanted.length <= lines.length; from += 1) {
      if (dedented(lines.slice(from, from + wanted.length)).join('\n') !== wanted.join('\n')) continue
      from += wanted.length
      return true
    }
    return false
  })
}

function dedented(lines: readonly string[]): string[] {
  const depth = Math.min(...lines.filter((line) => line !== '').map((line) => line.search(/\S|$/)))
  return lines.map((line) => line.slice(depth))
}

/** The properties that an interface of the engine declares. */
function propertiesOf(file: string, name: string): string[] {
  const path = `packages/engine/src/${file}`
  const found = parseSync(path, read(path))
    .program.body.map((statement) => ('declaration' in statement ? statement.declaration : statement))
    .filter((declared) => declared?.type === 'TSInterfaceDeclaration')
    .find((declared) => declared.id.name === name)
  if (found === undefined) throw new Error(`${path} declares no interface ${name}`)
  return found.body.body.flatMap((member) =>
    'key' in member && member.key.type === 'Identifier' ? [member.key.name] : [],
  )
}

function resolves(page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? page : relative(root, resolve(root, dirname(page), path))
  if (!existsSync(join(root, target))) return false
  return anchor === undefined || headingsOf(target).map(slug).includes(anchor)
}

/** The anchor of a heading, as GitHub makes it. */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}

/** What TypeScript has to say about examples, by the names of their files. */
function compileErrors(files: ReadonlyMap<string, string>): string[] {
  mkdirSync(join(root, '.cache'), { recursive: true })
  // In the repository, so that packages are found; in a folder that git ignores.
  const folder = mkdtempSync(join(root, '.cache/examples-'))
  try {
    for (const [name, text] of files) writeFileSync(join(folder, name), text)
    const config = { extends: '../../tsconfig.json', compilerOptions: { rootDir: '../..' }, include: ['*.ts'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const { stdout } = spawnSync(process.execPath, [compiler, '-p', folder, '--pretty', 'false'], { encoding: 'utf8' })
    return stdout.split('\n').filter((line) => line !== '')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Runs a program as if it stood in a clone after `npm ci`, and returns what it prints. */
function runExample(text: string): string {
  if (!existsSync(join(root, 'packages/engine/dist/index.js'))) {
    execFileSync(process.execPath, [compiler, '-b', join(root, 'packages/engine')])
  }
  // Not in the repository: as root, Postgres runs under an account that may not be able to enter it.
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'fencepost-example-')))
  try {
    chmodSync(directory, 0o755)
    symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
    writeFileSync(join(directory, 'hello.mjs'), text)
    return execFileSync(process.execPath, ['hello.mjs'], { cwd: directory, encoding: 'utf8', timeout: 100_000 })
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function anonymous(output: string): string {
  return output
    .replaceAll(/\b[0-9a-f]{32}\b/g, '<id>')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z/g, '<time>')
    .trim()
}
