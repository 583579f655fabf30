import type { JsonValue } from '@annals/client/json';
import { compareWords } from '../../../../console/src/compare/compare-words.ts';
import { objectLists } from '../../../../console/src/compare/list-table.tsx';
import { Text } from '../../../../console/src/components/text.tsx';
import { mask } from '../../../../console/src/data/json-editor/document-text.ts';
import type { TextName } from '../texts/en.ts';
import { useLanguage } from './language-context.ts';
import { ListChange } from './list-change.tsx';
import { Sentence } from './sentence.tsx';
import { textOf, Value } from './value.tsx';

interface FieldChangeProps {
  readonly entity: string;
  readonly path: string;
  readonly type: 'create' | 'update' | 'delete';
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
}

/** Characters of a text that gets a line of its own. */
const minLong = 60;

/** What happened to a field, as a sentence: `Status: from PAID to SHIPPED`. */
export function FieldChange({ entity, path, type, before, after }: FieldChangeProps) {
  const language = useLanguage();
  const lists = objectLists(before, after);
  if (lists !== undefined) return <ListChange entity={entity} path={path} {...lists} />;
  const isLong = [before, after].some((side) => side !== undefined && isLongValue(side));
  const runs =
    isLong && typeof before === 'string' && typeof after === 'string' ? compareWords(before, after) : undefined;
  const value = (side: 'before' | 'after', shown: JsonValue | undefined) =>
    shown === undefined ? null : <Value side={side} entity={entity} path={path} value={shown} runs={runs?.[side]} />;
  return (
    <li class={`field${isLong ? ' long' : ''}`} part="field">
      <Sentence
        text={sentenceOf(type, before, after)}
        with={{
          field: (
            <bdi class="field-name" part="field-name">
              <Text text={language.field(entity, path)} />
            </bdi>
          ),
          before: value('before', before),
          after: value('after', after),
        }}
      />
    </li>
  );
}

function sentenceOf(
  type: FieldChangeProps['type'],
  before: JsonValue | undefined,
  after: JsonValue | undefined,
): TextName {
  // Of what is hidden nobody sees what it became.
  if (after === mask) return 'set';
  if (before === undefined) return type === 'create' ? 'set' : 'setTo';
  return after === undefined ? 'removed' : 'fromTo';
}

function isLongValue(value: JsonValue): boolean {
  const text = textOf(value);
  return text.length >= minLong || text.includes('\n');
}
