/** A program that asks the history with a key, and what to paste for it. */
export interface Program {
  readonly name: string;
  /** Where the lines go: words, with names of files and variables between backticks. */
  readonly where: string;
  readonly lines: string;
}

const address = 'https://annals.example.com/mcp/acme';

/**
 * The programs of the guide on AI tools, each with its lines for an address.
 *
 * @example
 * programsOf(guide, 'https://annals.shop.example/mcp/shop')[0]; // { name: 'Claude Code', where: 'In a shell …', lines: 'claude mcp add …' }
 */
export function programsOf(guide: string, url: string): readonly Program[] {
  const [section = ''] = (guide.split('\n## Connect a program with a key\n')[1] ?? '').split('\n## ');
  return section.split('\n### ').flatMap((part) => {
    const [, name, where, lines] = /^(.+)\n\n(.+):\n\n```\w+\n([^`]+)\n```\n/.exec(part) ?? [];
    if (name === undefined || where === undefined || lines?.includes(address) !== true) return [];
    return [{ name, where, lines: lines.replace(address, url) }];
  });
}
