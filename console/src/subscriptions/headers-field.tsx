import { useId } from 'preact/hooks';
import { Button } from '../components/buttons.tsx';
import type { DraftHeader } from './subscription-draft.ts';

interface HeadersFieldProps {
  readonly label: string;
  readonly hint: string | undefined;
  readonly error: string | undefined;
  readonly headers: readonly DraftHeader[];
  readonly onChange: (headers: readonly DraftHeader[]) => void;
}

/** Names with values that nobody sees again. */
export function HeadersField({ label, hint, error, headers, onChange }: HeadersFieldProps) {
  const id = useId();
  const change = (index: number, part: Partial<DraftHeader>) =>
    onChange(headers.map((header, place) => (place === index ? { ...header, ...part } : header)));
  const state = { 'aria-describedby': `${id}-text`, 'aria-invalid': error !== undefined };
  return (
    <fieldset class={`form-field subscription-headers${error === undefined ? '' : ' invalid'}`}>
      <legend>{label}</legend>
      {headers.map(({ name, value, isStored }, index) => (
        <div key={index} class="subscription-header">
          <input
            {...state}
            aria-label={`Name of header ${index + 1}`}
            class="mono"
            autocomplete="off"
            spellcheck={false}
            placeholder="Authorization"
            value={name}
            readOnly={isStored}
            onInput={(event) => change(index, { name: event.currentTarget.value.trim() })}
          />
          <input
            {...state}
            aria-label={`Value of header ${index + 1}`}
            class="mono"
            type="password"
            autocomplete="new-password"
            placeholder={isStored ? 'kept' : ''}
            value={value}
            onInput={(event) => change(index, { value: event.currentTarget.value })}
          />
          <Button
            kind="quiet"
            icon="close"
            aria-label={`Remove the header ${name}`}
            onClick={() => onChange(headers.filter((_, place) => place !== index))}
          />
        </div>
      ))}
      <div>
        <Button
          kind="quiet"
          icon="plus"
          onClick={() => onChange([...headers, { name: '', value: '', isStored: false }])}
        >
          Add a header
        </Button>
      </div>
      <div id={`${id}-text`} class="form-text">
        {error === undefined ? hint : <span class="form-error">{error}</span>}
      </div>
    </fieldset>
  );
}
