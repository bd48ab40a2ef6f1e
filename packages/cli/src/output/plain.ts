// All control characters but the tab, which only moves on; to some terminals 0x9b is what escape and [ are.
const controls = /[^\P{Cc}\t]/gu

/** Text that came from elsewhere, on one line and without what would steer a terminal. */
export function plain(text: string): string {
  return text.replace(controls, (char) =>
    char === '\n' ? '\\n' : `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}

/** The same for text of several lines. */
export function plainLines(text: string): string {
  return text.split('\n').map(plain).join('\n')
}
