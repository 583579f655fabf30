import type { ComponentChildren } from 'preact';
import { FormField, type FormFieldProps } from './form-field.tsx';

/** `code`: what is no language of people, such as an id. */
const kinds = {
  name: { dir: 'auto', autocomplete: 'off' },
  code: { class: 'mono', autocomplete: 'off', spellcheck: false },
  url: { class: 'mono', type: 'url' },
  secret: { class: 'mono', type: 'password', autocomplete: 'new-password' },
  number: { class: 'number', inputMode: 'decimal', autocomplete: 'off' },
} as const;

interface TextFieldProps extends Omit<FormFieldProps, 'children'> {
  readonly kind: keyof typeof kinds;
  readonly value: string;
  readonly placeholder?: string | undefined;
  readonly onText: (text: string) => void;
}

/** A line of text in a form. */
export function TextField({ kind, value, placeholder, onText, ...field }: TextFieldProps) {
  return (
    <FormField {...field}>
      {(control) => (
        <input
          {...control}
          {...kinds[kind]}
          placeholder={placeholder}
          value={value}
          onInput={(event) => onText(event.currentTarget.value)}
        />
      )}
    </FormField>
  );
}

interface CheckFieldProps {
  readonly checked: boolean;
  readonly disabled?: boolean;
  readonly onCheck: (checked: boolean) => void;
  readonly children: ComponentChildren;
}

/** Something that is so or not. */
export function CheckField({ checked, disabled = false, onCheck, children }: CheckFieldProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onCheck(event.currentTarget.checked)}
      />
      {children}
    </label>
  );
}
