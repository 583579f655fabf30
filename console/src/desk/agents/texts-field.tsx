import { useId } from 'preact/hooks';
import { Button } from '../../components/buttons.tsx';
import type { DraftText } from './agent-draft.ts';

interface TextsFieldProps {
  readonly label: string;
  readonly texts: readonly DraftText[];
  readonly onChange: (texts: readonly DraftText[]) => void;
  readonly error: string | undefined;
}

/** A text in any number of languages. */
export function TextsField({ label, texts, onChange, error }: TextsFieldProps) {
  const id = useId();
  const change = (index: number, part: Partial<DraftText>) =>
    onChange(texts.map((text, place) => (place === index ? { ...text, ...part } : text)));
  const state = { 'aria-describedby': `${id}-text`, 'aria-invalid': error !== undefined };
  return (
    <fieldset class={`form-field texts-field${error === undefined ? '' : ' invalid'}`}>
      <legend>{label}</legend>
      {texts.map(({ language, text }, index) => (
        <div key={index} class="texts-row">
          <input
            {...state}
            aria-label={`${label}: language ${index + 1}`}
            class="mono"
            value={language}
            onInput={(event) => change(index, { language: event.currentTarget.value.trim() })}
          />
          <input
            {...state}
            aria-label={`${label} in ${language === '' ? 'this language' : language}`}
            dir="auto"
            value={text}
            onInput={(event) => change(index, { text: event.currentTarget.value })}
          />
          <Button
            kind="quiet"
            icon="close"
            aria-label={`Remove the ${label.toLowerCase()} in ${language}`}
            onClick={() => onChange(texts.filter((_, place) => place !== index))}
          />
        </div>
      ))}
      <div>
        <Button
          kind="quiet"
          icon="plus"
          onClick={() => onChange([...texts, { language: texts.length === 0 ? 'en' : '', text: '' }])}
        >
          Add a language
        </Button>
      </div>
      <div id={`${id}-text`} class="form-text">
        {error === undefined ? undefined : <span class="form-error">{error}</span>}
      </div>
    </fieldset>
  );
}
