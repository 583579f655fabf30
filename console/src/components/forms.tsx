import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

export interface FormFieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  /** What is wrong with the value; undefined where nothing is. */
  readonly error?: string | undefined;
  /** Makes the control, with these attributes on it. */
  readonly children: (control: {
    readonly id: string;
    readonly 'aria-describedby': string;
    readonly 'aria-invalid': boolean;
  }) => ComponentChildren;
}

/** A control of a form with its label, a hint, and its error right below it. */
export function FormField({ label, hint, error, children }: FormFieldProps) {
  const id = useId();
  return (
    <div class={`form-field${error === undefined ? '' : ' invalid'}`}>
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': `${id}-text`, 'aria-invalid': error !== undefined })}
      <div id={`${id}-text`} class="form-text">
        {error === undefined ? hint : <span class="form-error">{error}</span>}
      </div>
    </div>
  );
}

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
