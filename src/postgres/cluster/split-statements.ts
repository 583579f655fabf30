// What a semicolon may stand in without ending a statement: comments, texts and names in quotes, and bodies of routines.
const tokens = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$[\s\S]*?\$\1\$|;/g;

/**
 * The statements of an SQL text, one by one: a cluster sends the text of an "alter table" to its workers as it came, with
 * all that stands beside it.
 */
export function splitStatements(text: string): string[] {
  const statements: string[] = [];
  let begin = 0;
  for (const { 0: token, index } of text.matchAll(tokens)) {
    if (token !== ';') continue;
    statements.push(text.slice(begin, index));
    begin = index + 1;
  }
  statements.push(text.slice(begin));
  return statements.filter((statement) => statement.replaceAll(/--[^\n]*/g, '').trim() !== '');
}
