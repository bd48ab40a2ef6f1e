// @ts-check
// Installs what the interoperability tests talk to, none of it ours: Spark with Iceberg's runtime, PyIceberg, Iceberg's
// own REST catalog server, an S3 server and an authorization server. From PyPI, Maven, the Go proxy and npm as this
// machine has them configured, into .cache/interop, or the folder that FENCEPOST_INTEROP_CACHE names. What is there
// already is left alone.
//   node scripts/interop/install.mjs                    all of it
//   node scripts/interop/install.mjs s3 rest-catalog    only these
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const cache = resolve(
  process.env['FENCEPOST_INTEROP_CACHE'] ?? fileURLToPath(new URL('../../.cache/interop', import.meta.url)),
)
const copyJars = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies'
const s3Server = 'github.com/versity/versitygw/cmd/versitygw@v1.8.0'

/** Where each part is, once it is installed. */
export const installed = {
  python: join(cache, 'python/bin/python'),
  readers: join(cache, 'readers/bin/python'),
  sparkJars: join(cache, 'spark'),
  restCatalogJars: join(cache, 'rest-catalog'),
  s3: join(cache, 's3/versitygw'),
  authServer: join(cache, 'auth/node_modules/oidc-provider/lib/index.js'),
}

/**
 * @typedef {object} Part
 * @property {string} says what is being installed, for a person who waits
 * @property {string} needs what must be on the machine
 * @property {string} from what its version is made of: when this changes, it is installed again
 * @property {readonly string[]} probe a command that works if what is needed is there
 * @property {(folder: string) => readonly (readonly string[])[]} steps
 * @property {(folder: string) => Record<string, string>} [env]
 */

/** @type {Record<string, Part>} */
const parts = {
  python: python('PySpark and PyIceberg (about 900 MB)', 'requirements.txt'),
  readers: python('Polars, DataFusion and pyarrow (about 400 MB)', 'requirements-readers.txt'),
  spark: jars('spark', "Iceberg's runtime for Spark (110 MB)", ['-DexcludeTransitive=true']),
  'rest-catalog': jars('rest-catalog', "Iceberg's REST catalog server (150 MB)", ['-DincludeScope=runtime']),
  s3: {
    says: `an S3 server, ${s3Server} (compiled here: some minutes the first time)`,
    needs: 'go 1.24 or later, and the Go proxy',
    from: s3Server,
    probe: ['go', 'version'],
    steps: () => [['go', 'install', s3Server]],
    env: (folder) => ({ GOBIN: folder, CGO_ENABLED: '0' }),
  },
  auth: {
    says: 'an OAuth2 authorization server, oidc-provider (5 MB)',
    needs: 'npm, and a registry',
    from: readFileSync(join(here, 'npm/package-lock.json'), 'utf8'),
    probe: ['npm', '--version'],
    steps: (folder) => [
      ['cp', join(here, 'npm/package.json'), join(here, 'npm/package-lock.json'), folder],
      ['npm', 'ci', '--silent', '--no-audit', '--prefix', folder],
    ],
  },
}

/**
 * A virtual environment with what a list of requirements names.
 * @param {string} says
 * @param {string} requirements
 * @returns {Part}
 */
function python(says, requirements) {
  const list = join(here, requirements)
  return {
    says,
    needs: 'python3 3.10 or later with venv, and PyPI',
    from: readFileSync(list, 'utf8'),
    probe: ['python3', '-c', 'import sys, venv; assert sys.version_info >= (3, 10)'],
    steps: (folder) => [
      ['python3', '-m', 'venv', folder],
      [join(folder, 'bin/pip'), 'install', '--quiet', '--disable-pip-version-check', '-r', list],
    ],
  }
}

/**
 * @param {string} name
 * @param {string} says
 * @param {readonly string[]} options
 * @returns {Part}
 */
function jars(name, says, options) {
  const pom = join(here, 'maven', name, 'pom.xml')
  return {
    says,
    needs: 'java 17 or later, and mvn that can reach a copy of Maven Central',
    from: readFileSync(pom, 'utf8'),
    probe: ['sh', '-c', 'java -version && mvn --version'],
    steps: (folder) => [
      ['mvn', '--quiet', '--batch-mode', copyJars, '-f', pom, ...options, `-DoutputDirectory=${folder}`],
    ],
  }
}

/**
 * Installs the named parts, or all; gives what could not be installed, in words.
 * @param {readonly string[]} [names]
 * @returns {string[]}
 */
export function install(names = Object.keys(parts)) {
  return names.flatMap((name) => {
    const part = parts[name]
    if (part === undefined) throw new Error(`there is no part "${name}": ${Object.keys(parts).join(', ')}`)
    return installPart(name, part) ? [] : [`${part.says} could not be installed: it needs ${part.needs}`]
  })
}

/**
 * @param {string} name
 * @param {Part} part
 */
function installPart(name, part) {
  const folder = join(cache, name)
  const stamp = join(folder, '.installed')
  const version = createHash('sha256').update(part.from).digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === version) return true
  if (spawnSync(part.probe[0] ?? '', part.probe.slice(1), { stdio: 'ignore' }).status !== 0) return false
  console.log(`installing ${part.says}`)
  const since = Date.now()
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const env = { ...process.env, ...part.env?.(folder) }
  const done = part.steps(folder).every(([command = '', ...args]) => {
    return spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'], env }).status === 0
  })
  // Written last: what was interrupted is installed again.
  if (done) writeFileSync(stamp, version)
  if (done) console.log(`installed ${name} in ${Math.round((Date.now() - since) / 1000)} s`)
  return done
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const failures = install(process.argv.length > 2 ? process.argv.slice(2) : undefined)
  for (const failure of failures) console.error(`!! ${failure}`)
  if (failures.length > 0) process.exitCode = 1
}
