#!/usr/bin/env node
// A file of its own, and not one that is built: npm links it when it installs, which is before there is a dist/.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`error: This is Node ${process.versions.node}; fencepost needs 20.19 or later.\n`)
  process.exit(2)
}
// oxlint-disable-next-line no-restricted-imports -- Node runs this as it is, and cannot run the source
const { run } = await import('../dist/main.js')
await run()
