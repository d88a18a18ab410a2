// call_parameters.h - the parameters of wrappers, for the preprocessor.
#pragma once

// The parameters of a function with so many arguments, each of them of this type; the arguments where it is empty.
#define ARGUMENTS_0(Type)
#define ARGUMENTS_1(Type) Type a
#define ARGUMENTS_2(Type) ARGUMENTS_1(Type), Type b
#define ARGUMENTS_3(Type) ARGUMENTS_2(Type), Type c
#define ARGUMENTS_4(Type) ARGUMENTS_3(Type), Type d
#define ARGUMENTS_5(Type) ARGUMENTS_4(Type), Type e
#define ARGUMENTS_6(Type) ARGUMENTS_5(Type), Type f
#define ARGUMENTS_7(Type) ARGUMENTS_6(Type), Type g
#define ARGUMENTS_8(Type) ARGUMENTS_7(Type), Type h
#define ARGUMENTS_9(Type) ARGUMENTS_8(Type), Type i
#define ARGUMENTS_10(Type) ARGUMENTS_9(Type), Type j
#define ARGUMENTS_11(Type) ARGUMENTS_10(Type), Type k
#define ARGUMENTS_12(Type) ARGUMENTS_11(Type), Type l
#define ARGUMENTS_13(Type) ARGUMENTS_12(Type), Type m
