// Schemas written as values that TypeScript knows the type of: what validates a request says in the same breath what a
// handler gets. Only what the schemas of this service are made of. A library that does all of JSON Schema is 373 modules,
// whose loading was a sixth of a start (80 of 520 ms, November 2026).

/** What a schema describes; there for the types alone. */
declare const DESCRIBED: unique symbol;
declare const OPTIONAL: unique symbol;

/** Keywords of JSON Schema; `Value` is what they describe. */
export interface Schema<Value = unknown> {
  readonly [keyword: string]: unknown;
  readonly $id?: string;
  readonly [DESCRIBED]?: Value;
}

interface OptionalSchema<Value> extends Schema<Value> {
  readonly [OPTIONAL]: true;
}

export type Static<Of> = Of extends Schema<infer Value> ? Value : never;

type Keywords = Readonly<Record<string, unknown>>;

type Properties = Readonly<Record<string, Schema>>;

type ObjectOf<Of extends Properties> = {
  -readonly [Name in keyof Of as Of[Name] extends OptionalSchema<unknown> ? never : Name]: Static<Of[Name]>;
} & {
  -readonly [Name in keyof Of as Of[Name] extends OptionalSchema<unknown> ? Name : never]?: Static<Of[Name]>;
};

const optional = new WeakSet<Schema>();

export const Type = {
  String: (keywords: Keywords = {}): Schema<string> => ({ type: 'string', ...keywords }),

  Integer: (keywords: Keywords = {}): Schema<number> => ({ type: 'integer', ...keywords }),

  Literal: <Value extends string>(value: Value, keywords: Keywords = {}): Schema<Value> => ({
    const: value,
    ...keywords,
  }),

  Array: <Item>(items: Schema<Item>, keywords: Keywords = {}): Schema<Item[]> => ({
    type: 'array',
    items,
    ...keywords,
  }),

  Object: <Of extends Properties>(properties: Of, keywords: Keywords = {}): Schema<ObjectOf<Of>> => {
    const required = Object.keys(properties).filter((name) => !optional.has(properties[name] as Schema));
    return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...keywords };
  },

  /** A property that may be absent. */
  Optional: <Value>(schema: Schema<Value>): OptionalSchema<Value> => {
    const copy = { ...schema } as OptionalSchema<Value>;
    optional.add(copy);
    return copy;
  },

  /** What is described elsewhere. */
  Ref: ($ref: string, keywords: Keywords = {}): Schema => ({ $ref, ...keywords }),

  /** Of a type that the keywords do not tell TypeScript. */
  Unsafe: <Value>(keywords: Keywords): Schema<Value> => ({ ...keywords }),
};
