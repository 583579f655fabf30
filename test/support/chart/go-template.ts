import { stringify } from 'yaml';

/**
 * A small part of Go's templates, as much as the chart uses, because there is no Helm here: define, include, if, else,
 * range over a map, and pipelines of the functions below. Whatever else a template has is an error.
 */
export class GoTemplates {
  readonly #named = new Map<string, Node[]>();

  /** Reads a file: keeps what it defines, and returns the rest. */
  parse(text: string): Node[] {
    const tokens = tokensOf(text);
    const nodes = parseBlock(tokens, this.#named);
    if (tokens.length > 0) throw new Error(`unexpected {{ ${tokens[0]?.text} }}`);
    return nodes;
  }

  render(nodes: readonly Node[], root: Scope['root'], variables: Scope['variables'] = new Map()): string {
    const scope = { root, variables };
    return nodes.map((node) => this.#renderOne(node, scope)).join('');
  }

  #renderOne(node: Node, scope: Scope): string {
    if (node.kind === 'text') return node.text;
    if (node.kind === 'action') return textOf(this.#evaluate(node.text, scope));
    if (node.kind === 'if') {
      const branch = isTrue(this.#evaluate(node.text, scope)) ? node.body : node.otherwise;
      return this.render(branch, scope.root, scope.variables);
    }
    const [, name = '', value = '', of = ''] = /^\$(\w+), \$(\w+) := (.+)$/.exec(node.text) ?? [];
    if (name === '') throw new Error(`{{ range ${node.text} }} is not known here`);
    // Go visits the keys of a map in their order.
    const items = Object.entries(this.#evaluate(of, scope) ?? {}).sort(([one], [other]) => (one < other ? -1 : 1));
    return items
      .map(([key, item]) => {
        const variables = new Map([...scope.variables, [name, key], [value, item]]);
        return this.render(node.body, scope.root, variables);
      })
      .join('');
  }

  #evaluate(pipeline: string, scope: Scope): unknown {
    let value: unknown;
    for (const [place, command] of pipeline.split(' | ').entries()) {
      const [head = '', ...rest] = command.match(/"[^"]*"|\S+/g) ?? [];
      const values = rest.map((argument) => argumentOf(argument, scope));
      if (place > 0) values.push(value);
      const call = this.#functions[head];
      if (call !== undefined) value = call(...values);
      else if (values.length === 0) value = argumentOf(head, scope);
      else throw new Error(`{{ ${pipeline} }}: the function ${head} is not known here`);
    }
    return value;
  }

  readonly #functions: Record<string, (...values: unknown[]) => unknown> = {
    include: (name, root) => {
      const nodes = this.#named.get(String(name));
      if (nodes === undefined) throw new Error(`nothing defines ${name}`);
      return this.render(nodes, root);
    },
    quote: (value) => JSON.stringify(textOf(value)),
    nindent: (count, value) =>
      `\n${textOf(value)
        .split('\n')
        .map((line) => ' '.repeat(Number(count)) + line)
        .join('\n')}`,
    toYaml: (value) => stringify(value).trimEnd(),
    default: (otherwise, value) => (isTrue(value) ? value : otherwise),
    trunc: (count, value) => textOf(value).slice(0, Number(count)),
    trimSuffix: (suffix, value) => {
      const text = textOf(value);
      return text.endsWith(textOf(suffix)) ? text.slice(0, -textOf(suffix).length) : text;
    },
    or: (...values) => values.find(isTrue) ?? values.at(-1),
    div: (one, other) => Math.trunc(Number(one) / Number(other)),
  };
}

type Node =
  | { kind: 'text'; text: string }
  | { kind: 'action'; text: string }
  | { kind: 'if'; text: string; body: Node[]; otherwise: Node[] }
  | { kind: 'range'; text: string; body: Node[] };

interface Scope {
  root: unknown;
  variables: ReadonlyMap<string, unknown>;
}

interface Token {
  kind: 'text' | 'tag';
  text: string;
}

/** `{{-` takes the blanks before it away, and `-}}` those after it. */
function tokensOf(text: string): Token[] {
  const parts = text
    .replace(/\s*\{\{- /g, '{{ ')
    .replace(/ -\}\}\s*/g, ' }}')
    .split(/\{\{ (.*?) \}\}/s);
  if (parts.some((part, place) => place % 2 === 0 && /\{\{|\}\}/.test(part))) throw new Error('a tag is not closed');
  return parts.map((part, place): Token => ({ kind: place % 2 === 0 ? 'text' : 'tag', text: part }));
}

/** Reads until the `end` or `else` of the block, which is left for the caller. */
function parseBlock(tokens: Token[], named: Map<string, Node[]>): Node[] {
  const nodes: Node[] = [];
  for (let token = tokens[0]; token !== undefined; token = tokens[0]) {
    const { kind, text } = token;
    if (kind === 'tag' && (text === 'end' || text === 'else')) return nodes;
    tokens.shift();
    const [, word = '', rest = ''] = /^(\w+)(?: (.*))?$/s.exec(text) ?? [];
    if (kind === 'text') {
      nodes.push({ kind, text });
    } else if (word === 'define') {
      named.set(JSON.parse(rest), parseBlock(tokens, named));
      closeBlock(tokens);
    } else if (word === 'if') {
      const body = parseBlock(tokens, named);
      let otherwise: Node[] = [];
      if (tokens[0]?.text === 'else') {
        tokens.shift();
        otherwise = parseBlock(tokens, named);
      }
      closeBlock(tokens);
      nodes.push({ kind: 'if', text: rest, body, otherwise });
    } else if (word === 'range') {
      nodes.push({ kind: 'range', text: rest, body: parseBlock(tokens, named) });
      closeBlock(tokens);
    } else {
      nodes.push({ kind: 'action', text });
    }
  }
  return nodes;
}

function closeBlock(tokens: Token[]): void {
  if (tokens.shift()?.text !== 'end') throw new Error('a block has no {{ end }}');
}

function argumentOf(text: string, { root, variables }: Scope): unknown {
  if (/^"[^"]*"$/.test(text) || /^\d+$/.test(text)) return JSON.parse(text);
  if (text === '.') return root;
  const [head = '', ...path] = text.split('.');
  if (head !== '' && !head.startsWith('$')) throw new Error(`${text} is not known here`);
  let value = head === '' ? root : variables.get(head.slice(1));
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !(name in value)) throw new Error(`there is no ${text}`);
    value = Reflect.get(value, name);
  }
  return value;
}

function isTrue(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}

function textOf(value: unknown): string {
  return value === null || value === undefined ? '' : String(value);
}
