import { JsonNumber, type JsonValue, stringifyJson } from '@annals/client/json';
import type { WordRun } from '../../../../console/src/compare/compare-words.ts';
import { Text } from '../../../../console/src/components/text.tsx';
import { mask } from '../../../../console/src/data/json-editor/document-text.ts';
import type { Language } from '../texts/language.ts';
import { useLanguage } from './language-context.ts';

interface ValueProps {
  /** `same`: it stands on both sides. */
  readonly side: 'before' | 'after' | 'same';
  readonly entity: string;
  readonly path: string;
  readonly value: JsonValue;
  /** What stands in it as it was, and what does not; undefined: it is not compared. */
  readonly runs?: readonly WordRun[] | undefined;
}

/** A value as it was written: text, never markup. */
export function Value({ side, entity, path, value, runs }: ValueProps) {
  const language = useLanguage();
  const Tag = side === 'before' ? 'del' : side === 'after' ? 'ins' : 'span';
  const said = runs === undefined ? wordOf(value, entity, path, language) : undefined;
  return (
    <Tag
      class={`value ${side}${said?.isWord === true ? ' word' : ''}${value === mask ? ' masked' : ''}`}
      part={`value ${side}`}
      title={said?.title}
    >
      <bdi>
        {runs === undefined ? (
          <SaidValue said={said} />
        ) : (
          placed(runs).map(({ text, changed, at }) =>
            changed ? (
              <mark key={at}>
                <Text text={text} lines />
              </mark>
            ) : (
              <Text key={at} text={text} lines />
            ),
          )
        )}
      </bdi>
    </Tag>
  );
}

function placed(runs: readonly WordRun[]): (WordRun & { readonly at: number })[] {
  let end = 0;
  return runs.map((run) => {
    const at = end;
    end += run.text.length;
    return { ...run, at };
  });
}

/** Signs for hidden characters are for those of the value: dates of some languages have them, too. */
function SaidValue({ said }: { readonly said: Said | undefined }) {
  if (said === undefined) return null;
  if (!said.isOurs) return <Text text={said.text} lines />;
  return said.text;
}

interface Said {
  readonly text: string;
  /** Not the value itself: a word of the reader's language, a date of their calendar. */
  readonly isOurs: boolean;
  /** What stands for no value that could be read. */
  readonly isWord?: boolean;
  /** The value, where something else stands for it. */
  readonly title?: string | undefined;
}

function wordOf(value: JsonValue, entity: string, path: string, language: Language): Said {
  const word = (text: string): Said => ({ text, isOurs: true, isWord: true });
  if (value === mask) return word(language.text('masked'));
  const written = textOf(value);
  const known = language.value(entity, path, written);
  if (known !== undefined) return { text: known, isOurs: true, title: written };
  if (value === null) return word(language.text('null'));
  if (typeof value === 'boolean') return { text: language.text(value ? 'true' : 'false'), isOurs: true };
  if (value === '' || sizeOf(value) === 0) return word(language.text('empty'));
  if (typeof value !== 'string') return { text: listed(value) ?? written, isOurs: false };
  const time = timeOf(value, language);
  return time === undefined ? { text: value, isOurs: false } : { text: time, isOurs: true, title: value };
}

/** What a host's word for a value is looked up by. Numbers keep every digit. */
export function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : stringifyJson(value);
}

function sizeOf(value: JsonValue): number | undefined {
  if (Array.isArray(value)) return value.length;
  return value instanceof Map ? value.size : undefined;
}

/** A list of texts and numbers, as people write one. */
function listed(value: JsonValue): string | undefined {
  if (!Array.isArray(value)) return undefined;
  const items = value.map((item) =>
    typeof item === 'string' ? item : item instanceof JsonNumber ? item.text : undefined,
  );
  return items.every((item) => item !== undefined) ? items.join(', ') : undefined;
}

const day = /^\d{4}-\d\d-\d\d$/;
const moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/;

/** A day or a moment for the reader's calendar; undefined for other texts, and for days that no calendar has. */
function timeOf(value: string, language: Language): string | undefined {
  const isDay = day.test(value);
  if (!isDay && !moment.test(value)) return undefined;
  const at = Date.parse(value);
  if (Number.isNaN(at)) return undefined;
  return isDay ? language.date(value) : language.moment(at);
}
