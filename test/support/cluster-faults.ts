/** Something in the SQL of a file that a cluster refuses, or answers for the wrong server. */
export interface ClusterFault {
  readonly rule:
    | 'volatile condition'
    | 'volatile update'
    | 'moment in case'
    | 'moment in conflict'
    | 'moment in returning'
    | 'interval of a column'
    | 'case of a value'
    | 'transaction of the coordinator'
    | 'routine beside another'
    | 'text of a record'
    | 'local with distributed'
    | 'no tenant'
    | 'routine with tables'
    | 'table in element';
  /** The start of the statement. */
  readonly statement: string;
}

export interface KnownTables {
  /** The tables with a column `tenant`. */
  readonly distributed: ReadonlySet<string>;
  /** All others of the database. */
  readonly local: ReadonlySet<string>;
  /**
   * The routines that run on the worker of their tenant and read its tables, as far as statements may not call them.
   */
  readonly routines: ReadonlySet<string>;
  /** All of these routines. */
  readonly readers: ReadonlySet<string>;
}

/** The tables that the texts of migrations make. */
export function tablesOf(migrations: readonly string[]): Pick<KnownTables, 'distributed' | 'local'> {
  const distributed = new Set<string>();
  const local = new Set<string>();
  for (const text of migrations) {
    for (const [, name = '', columns = ''] of text.matchAll(
      /create (?:unlogged )?table (?:if not exists )?(\w+) \(\n([\s\S]*?)\n\)/g,
    )) {
      (/^\s+tenant\s/m.test(columns) ? distributed : local).add(name);
    }
  }
  return { distributed, local };
}

/** The faults of a routine's text: of its statements, without what PL/pgSQL does between them. */
export function faultsOfRoutine(text: string, tables: KnownTables): ClusterFault[] {
  const body = /\$\$([\s\S]*)\$\$/.exec(text)?.[1] ?? text;
  return withoutComments(body)
    .split(';')
    .flatMap((statement) => [
      ...faultsOfStatement(statement, tables),
      ...[...statement.matchAll(/\b(\w+)\(\s*of_tenant\s*,([^;]*)/g)]
        // It has the collation of its column, and so has the name of the tenant in the called routine: another value to
        // the cluster.
        .filter(([, name = '', rest = '']) => tables.readers.has(name) && /^[^)]*\b[a-z]\w*\.[a-z]\w*/.test(rest))
        .map(() => faultOf('text of a record', statement)),
      // PL/pgSQL reads the assignment to an element of an array in a way of its own, which the cluster does not.
      ...(/\w\[[^\]]+\]\s*:=[\s\S]*\bfrom change_\w+/.test(statement) ? [faultOf('table in element', statement)] : []),
    ]);
}

/** The faults of the SQL in a file of TypeScript: of texts in quotes, and of the chains of the query builder. */
export function faultsOfStore(source: string, tables: KnownTables): ClusterFault[] {
  const plain = source.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '');
  const faults: ClusterFault[] = [];
  for (const text of textsOf(plain)) {
    const statement = withFragments(text, plain);
    if (/^\s*(select|insert|update|delete|with|declare)\b/i.test(statement)) {
      faults.push(...faultsOfStatement(statement, tables), ...faultsOnCoordinator(statement, tables));
    }
  }
  for (const [chain, table = ''] of plain.matchAll(
    /\.(?:selectFrom|updateTable|deleteFrom)\('(\w+)'\)[\s\S]*?(?=;\n|\n\n|$)/g,
  )) {
    if (tables.distributed.has(table) && !tenantInChain.test(chain)) {
      faults.push(faultOf('no tenant', chain));
    }
    if (tables.distributed.has(table) && chain.startsWith('.updateTable') && writtenVolatile.test(chain))
      faults.push(faultOf('volatile update', chain));
  }
  for (const [chain, set = ''] of plain.matchAll(/\.updateTable\('\w+'\)[\s\S]*?`([^`]*\binterval\b[^`]*)`/g)) {
    if (/^[a-z]\w*\s+[-+]\s/i.test(set)) faults.push(faultOf('interval of a column', chain));
  }
  for (const [condition] of plain.matchAll(/\.where\([^\n]*clock_timestamp\(\)/g)) {
    faults.push(faultOf('volatile condition', condition));
  }
  return faults;
}

const tenantInChain = /\.where\(\s*(?:'(?:\w+\.)?tenant', '='|\(\{ and \}\) =>\s*and\(\{ (?:tenant\b|'\w+\.tenant':))/;
const volatile = /\b(clock_timestamp|random|gen_random_uuid|nextval|timeofday)\s*\(/gi;
const writtenVolatile = new RegExp(volatile.source, 'i');
const clauses = /\b(select|set|values|returning|where|on|having|when|if|elsif|from)\b|:=/gi;

function faultsOfStatement(statement: string, { distributed, local, routines }: KnownTables): ClusterFault[] {
  const named = [...statement.matchAll(/\b(?:from|join|update|into|using)\s+(\w+)/gi)].map(([, name = '']) => name);
  const tables = named.filter((name) => distributed.has(name));
  if (tables.length === 0) return [];
  const faults: ClusterFault[] = [];
  for (const { index } of statement.matchAll(volatile)) {
    const clause = [...statement.slice(0, index).matchAll(clauses)].at(-1)?.[0].toLowerCase();
    if (clause === 'where' || clause === 'on' || clause === 'having')
      faults.push(faultOf('volatile condition', statement));
  }
  faults.push(...faultsOfWrite(statement));
  if (/\bcase\s+(?:\$\{[^}]*\}|\$\d+)\s+when\b/i.test(statement)) faults.push(faultOf('case of a value', statement));
  if (named.some((name) => local.has(name))) faults.push(faultOf('local with distributed', statement));
  const inserts = /\binto\s+\w+(?:\s+as\s+\w+)?\s*\(tenant\b/i.test(statement);
  if (!inserts && !/\btenant\s*=|\btenant\)\s*=/i.test(statement)) faults.push(faultOf('no tenant', statement));
  const called = [...statement.matchAll(/\b(\w+)\(/g)].map(([, name = '']) => name);
  if (called.some((name) => routines.has(name))) faults.push(faultOf('routine with tables', statement));
  return faults;
}

const moment = /\b(?:clock_timestamp|statement_timestamp|transaction_timestamp|now)\s*\(/i;

/** Faults of what an update, a delete or an insert says itself, and not of the queries before it. */
function faultsOfWrite(statement: string): ClusterFault[] {
  const faults: ClusterFault[] = [];
  const [, conflict = ''] = /\bdo\s+update\s+set\b([\s\S]*)/i.exec(statement) ?? [];
  if (moment.test(conflict)) faults.push(faultOf('moment in conflict', statement));
  const [write = ''] = /\b(?:update\s+\w+(?:\s+(?:as\s+)?\w+)?\s+set|delete\s+from)\b[\s\S]*/i.exec(statement) ?? [];
  if (writtenVolatile.test(write)) faults.push(faultOf('volatile update', statement));
  const [, returned = ''] = /\breturning\b([\s\S]*?)(?:\)\s*select\b|$)/i.exec(write) ?? [];
  if (moment.test(returned)) faults.push(faultOf('moment in returning', statement));
  if (casesOf(write).some((text) => moment.test(text))) faults.push(faultOf('moment in case', statement));
  if (/(?<![\w.)])(?:[a-z]\w*\.)?[a-z]\w*\s+[-+]\s+[^,;()]*(?:\binterval\b)/i.test(write))
    faults.push(faultOf('interval of a column', statement));
  return faults;
}

/** The outermost texts from case to end, and the arguments of coalesce. */
function casesOf(text: string): string[] {
  const cases: string[] = [];
  let depth = 0;
  let begin = 0;
  for (const { 0: word, index } of text.matchAll(/\b(?:case|end)\b/gi)) {
    if (word.toLowerCase() === 'case') {
      if (depth === 0) begin = index;
      depth += 1;
    } else if (depth > 0) {
      depth -= 1;
      if (depth === 0) cases.push(text.slice(begin, index));
    }
  }
  return [...cases, ...[...text.matchAll(/\bcoalesce\(((?:[^()]|\([^()]*\))*)\)/gi)].map(([all]) => all)];
}

/**
 * Faults of a statement that the service sends: the coordinator answers for itself, and calls joined routines itself.
 */
function faultsOnCoordinator(statement: string, { distributed, readers }: KnownTables): ClusterFault[] {
  const faults: ClusterFault[] = [];
  const [, written = ''] = /\b(?:insert\s+into|update|delete\s+from)\s+(\w+)/i.exec(statement) ?? [];
  if (distributed.has(written) && /\bpg_current_(?:xact_id|snapshot)\b/i.test(statement))
    faults.push(faultOf('transaction of the coordinator', statement));
  if ([...statement.matchAll(/\bjoin\s+(?:lateral\s+)?(\w+)\(/gi)].some(([, name = '']) => readers.has(name)))
    faults.push(faultOf('routine beside another', statement));
  return faults;
}

function faultOf(rule: ClusterFault['rule'], statement: string): ClusterFault {
  return { rule, statement: statement.trim().replaceAll(/\s+/g, ' ').slice(0, 120) };
}

/** The text with those fragments in place of their calls that a function of the same file makes. */
function withFragments(text: string, source: string): string {
  return text.replaceAll(/\$\{(\w+)\([^)]*\)\}/g, (call, name: string) => {
    const [, fragment] = new RegExp(`function ${name}\\([^\n]*\n\\s*return sql\`([^\n]*)\`;`).exec(source) ?? [];
    return fragment ?? call;
  });
}

function withoutComments(text: string): string {
  return text.replaceAll(/--[^\n]*/g, '');
}

/** The texts in quotes of a source, the outermost ones. */
function textsOf(source: string): string[] {
  const texts: string[] = [];
  for (let at = 0; at < source.length; at += 1) {
    const quote = source[at];
    if (quote !== '`' && quote !== "'" && quote !== '"') continue;
    const end = endOfText(source, at);
    texts.push(source.slice(at + 1, end));
    at = end;
  }
  return texts;
}

function endOfText(source: string, start: number): number {
  const quote = source[start];
  for (let at = start + 1; at < source.length; at += 1) {
    if (source[at] === '\\') at += 1;
    else if (source[at] === quote) return at;
    else if (quote !== '`' && source[at] === '\n') return at;
    else if (quote === '`' && source.startsWith('${', at)) at = endOfPlace(source, at + 2);
  }
  return source.length;
}

/** The closing brace of a place in a template. */
function endOfPlace(source: string, start: number): number {
  let depth = 0;
  for (let at = start; at < source.length; at += 1) {
    const character = source[at];
    if (character === '`' || character === "'" || character === '"') at = endOfText(source, at);
    else if (character === '{') depth += 1;
    else if (character === '}' && depth === 0) return at;
    else if (character === '}') depth -= 1;
  }
  return source.length;
}
