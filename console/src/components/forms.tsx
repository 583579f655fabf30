import { ApiError } from '@annals/client';
import type { ComponentChildren, InputHTMLAttributes, TextareaHTMLAttributes } from 'preact';
import { useId } from 'preact/hooks';
import { Button } from './buttons.tsx';

interface FormFieldProps {
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
  moment: { type: 'datetime-local' },
} as const;

type FieldProps = Omit<FormFieldProps, 'children'>;

interface TextFieldProps extends FieldProps {
  readonly kind?: keyof typeof kinds;
  readonly value: string;
  readonly onText: (text: string) => void;
  readonly placeholder?: string | undefined;
  /** Further attributes of the input. */
  readonly input?: InputHTMLAttributes;
}

/** A line of text in a form. */
export function TextField({ kind, value, placeholder, onText, input, ...field }: TextFieldProps) {
  return (
    <FormField {...field}>
      {(control) => (
        <input
          {...control}
          {...((kind && kinds[kind]) as object)}
          {...(input as object)}
          placeholder={placeholder}
          value={value}
          onInput={(event) => onText(event.currentTarget.value)}
        />
      )}
    </FormField>
  );
}

interface TextAreaProps extends FieldProps {
  readonly value: string;
  readonly rows: number;
  readonly onText: (text: string) => void;
  /** Further attributes of the control. */
  readonly area?: TextareaHTMLAttributes;
}

/** A text of several lines in a form. */
export function TextArea({ value, rows, onText, area, ...field }: TextAreaProps) {
  return (
    <FormField {...field}>
      {(control) => (
        <textarea
          {...control}
          rows={rows}
          dir="auto"
          {...(area as object)}
          value={value}
          onInput={(event) => onText(event.currentTarget.value)}
        />
      )}
    </FormField>
  );
}

interface SelectProps<Value extends string> {
  readonly id?: string;
  readonly class?: string;
  readonly 'aria-label'?: string;
  readonly value: Value;
  readonly disabled?: boolean | undefined;
  /** The values with their words. */
  readonly choices: readonly (readonly [value: Value, words: string])[];
  readonly onChoose: (value: Value) => void;
}

/** One of several values. */
export function Select<Value extends string>({ choices, onChoose, ...control }: SelectProps<Value>) {
  return (
    <select {...control} onChange={(event) => onChoose(event.currentTarget.value as Value)}>
      {choices.map(([choice, words]) => (
        <option key={choice} value={choice}>
          {words}
        </option>
      ))}
    </select>
  );
}

/** One of several values in a form. */
export function SelectField<Value extends string>(props: SelectProps<Value> & FieldProps) {
  const { value, disabled, choices, onChoose, ...field } = props;
  const chosen = { value, disabled, choices, onChoose };
  return <FormField {...field}>{(control) => <Select {...control} {...chosen} />}</FormField>;
}

interface RowsFieldProps<Row> extends FieldProps {
  readonly class?: string;
  readonly rows: readonly Row[];
  /** The row that the button adds. */
  readonly empty: Row;
  readonly add: string;
  readonly removeLabel: (row: Row) => string;
  readonly onChange: (rows: readonly Row[]) => void;
  /** Makes the controls of a row, with these attributes on them. `number` counts from 1. */
  readonly children: (
    row: Row,
    change: (part: Partial<Row>) => void,
    control: { readonly 'aria-describedby': string; readonly 'aria-invalid': boolean },
    number: number,
  ) => ComponentChildren;
}

/** Any number of rows of controls in a form. */
export function RowsField<Row>(props: RowsFieldProps<Row>) {
  const { label, hint, error, class: name = '', rows, empty, add, removeLabel, onChange, children } = props;
  const id = useId();
  const control = { 'aria-describedby': `${id}-text`, 'aria-invalid': error !== undefined };
  return (
    <fieldset class={`form-field rows-field ${name}${error === undefined ? '' : ' invalid'}`}>
      <legend>{label}</legend>
      {rows.map((row, index) => (
        <div key={index} class="field-row">
          {children(row, (part) => onChange(rows.with(index, { ...row, ...part })), control, index + 1)}
          <Button
            kind="quiet"
            icon="close"
            aria-label={removeLabel(row)}
            onClick={() => onChange(rows.toSpliced(index, 1))}
          />
        </div>
      ))}
      <div>
        <Button kind="quiet" icon="plus" onClick={() => onChange([...rows, empty])}>
          {add}
        </Button>
      </div>
      <div id={`${id}-text`} class="form-text">
        {error === undefined ? hint : <span class="form-error">{error}</span>}
      </div>
    </fieldset>
  );
}

/** A header as it is being written. */
export interface DraftHeader {
  readonly name: string;
  /** Empty: the value that is stored stays. */
  readonly value: string;
  readonly isStored: boolean;
}

/** The headers that are stored, whose values are not shown. */
export function draftHeaders(headers: object = {}): DraftHeader[] {
  return Object.keys(headers).map((name) => ({ name, value: '', isStored: true }));
}

interface HeadersFieldProps extends FieldProps {
  readonly headers: readonly DraftHeader[];
  readonly onChange: (headers: readonly DraftHeader[]) => void;
}

/** Headers with values that are never shown again. */
export function HeadersField({ headers, onChange, ...field }: HeadersFieldProps) {
  return (
    <RowsField
      {...field}
      rows={headers}
      empty={{ name: '', value: '', isStored: false }}
      add="Add a header"
      removeLabel={({ name }) => `Remove the header ${name}`}
      onChange={onChange}
    >
      {({ name, value, isStored }, change, control, number) => (
        <>
          <input
            {...control}
            aria-label={`Name of header ${number}`}
            class="mono"
            autocomplete="off"
            spellcheck={false}
            placeholder="Authorization"
            value={name}
            readOnly={isStored}
            onInput={(event) => change({ name: event.currentTarget.value.trim() })}
          />
          <input
            {...control}
            aria-label={`Value of header ${number}`}
            class="mono"
            type="password"
            autocomplete="new-password"
            placeholder={isStored ? 'kept' : 'Bearer …'}
            value={value}
            onInput={(event) => change({ value: event.currentTarget.value })}
          />
        </>
      )}
    </RowsField>
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

/** The service's details of an error by part of a form, named by `partOf`. `rest`: the error unless all have a part. */
export function placedDetails<Part extends string>(error: unknown, partOf: (field: string) => Part | undefined) {
  const details = error instanceof ApiError ? error.details : [];
  const parts: Partial<Record<Part, string>> = {};
  for (const { field, message } of details) {
    const part = partOf(field);
    if (part !== undefined)
      parts[part] ??= field.startsWith(`${part}.`) ? `${field.slice(part.length + 1)}: ${message}` : message;
  }
  const isAll = details.length > 0 && details.every(({ field }) => partOf(field) !== undefined);
  return { parts, rest: isAll ? undefined : error };
}

/** Moves the focus to the first field that is wrong, once its fault is drawn. */
export function focusFirstFault(form: EventTarget | null): void {
  requestAnimationFrame(() => {
    const control = form instanceof HTMLElement ? form.querySelector('[aria-invalid="true"]') : null;
    if (control instanceof HTMLElement) control.focus();
  });
}
