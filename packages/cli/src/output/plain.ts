// Not a tab, which only moves on. C1 characters, too: to some terminals 0x9b is what escape and [ are.
const controls = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g

/** Text that came from elsewhere, on one line and without what would steer a terminal. */
export function plain(text: string): string {
  return text.replace(controls, (char) =>
    char === '\n' ? '\\n' : `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}
