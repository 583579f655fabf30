import type { JsonValue } from '@annals/client/json';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { giveWay } from '../api/give-way.ts';
import { type ComparedTexts, compareWords } from './compare-words.ts';

/** Strings at least this long together are compared word by word. */
const minLength = 12;
/** Strings that are shorter are compared before they are drawn. */
const maxAtOnce = 600;

/**
 * Compares two strings word by word. Long ones are compared after they are drawn, one pair at a time, so that a page with many of
 * them answers meanwhile. Undefined until then, for values that are no strings, and where a comparison does not help.
 */
export function useComparedWords(
  before: JsonValue | undefined,
  after: JsonValue | undefined,
): ComparedTexts | undefined {
  const pair = useMemo(
    () =>
      typeof before === 'string' && typeof after === 'string' && before.length + after.length >= minLength
        ? ([before, after] as const)
        : undefined,
    [before, after],
  );
  const isShort = pair !== undefined && pair[0].length + pair[1].length <= maxAtOnce;
  const atOnce = useMemo(() => (isShort ? compareWords(...pair) : undefined), [pair, isShort]);
  const [later, setLater] = useState<{ readonly of: typeof pair; readonly compared: ComparedTexts | undefined }>();
  useEffect(() => {
    if (pair === undefined || isShort) return;
    let isWanted = true;
    void giveWay().then(() => {
      if (isWanted) setLater({ of: pair, compared: compareWords(...pair) });
    });
    return () => {
      isWanted = false;
    };
  }, [pair, isShort]);
  return atOnce ?? (later?.of === pair ? later?.compared : undefined);
}
